"""What a gang asks across its pods, for trying everything: the models' oracle.

Written from docs/semantics.md alone; shares no code with kinds, models or judge. All
rules but preferences only ever get worse with more pods, so they may be asked early.
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.device import Device
from contracts.gang_rules import GangConstraint, GangTopology
from solver.problem.gangs import ClaimPart, GangPart, MemberPart, SubrequestPart
from solver.snapshot.parts import NodePart, PoolSlice
from tests.oracles.brute_world import Place, Thing, World


@dataclass(frozen=True, eq=False)
class Had:
    """A device that a pod has, and what for."""

    claim: ClaimPart
    request: str
    asked: SubrequestPart
    thing: Thing
    shared: str = ""
    """The claim, if others of the gang have it, too."""


@dataclass(frozen=True, eq=False)
class Member:
    """A pod of a gang on its node; `stands_for` so many pods."""

    name: str
    index: int
    node: NodePart
    stands_for: int
    devices: tuple[Had, ...]


def may_grow(member: MemberPart) -> bool:
    """Say whether the gang may be in with fewer of its pods."""
    return member.min_count is not None and member.min_count < member.count


def worth_of(member: MemberPart) -> int:
    """Count what a pod is worth that its gang could be without."""
    firsts = [r.alternatives[0] for claim in member.claims for r in claim.requests]
    return max(1, sum(1 if f.all_devices else f.count for f in firsts))


def list_had(
    member: MemberPart,
    asked: list[SubrequestPart],
    chosen: tuple[tuple[int, ...], ...],
    place: Place,
) -> tuple[Had, ...]:
    """List the devices of a pod, each with what it is for."""
    wanted = [(claim, r) for claim in member.claims for r in claim.requests]
    return tuple(
        Had(claim, request.name, item, place.things[device])
        for (claim, request), item, devices in zip(wanted, asked, chosen, strict=True)
        for device in devices
    )


def list_standing(gang: GangPart, world: World) -> tuple[Member, ...]:
    """List the pods that have their place; a device that is gone has no values."""
    pods = []
    for pod in gang.standing:
        had = []
        for held in pod.devices:
            name, one = held.device, held.device.device
            found = [
                device
                for pool in world.pools
                if (pool.driver, pool.pool) == (name.driver, name.pool)
                for device in pool.devices
                if device.name == one
            ]
            thing = Thing(
                name, (*found, Device(name=one))[0], PoolSlice(name=""), here=True
            )
            request, _, sub = held.request.partition("/")
            asked = SubrequestPart(name=sub, derived_attributes=held.derived_attributes)
            had.append(Had(ClaimPart(name=held.claim), request, asked, thing))
        nodes = {place.node.name: place.node for place in world.places}
        node = nodes.get(pod.node, NodePart(name=pod.node))
        pods.append(Member(pod.member, pod.index, node, pod.pods, tuple(had)))
    return tuple(pods)


def is_plain(gang: GangPart) -> bool:
    """Say whether it asks nothing of the kind."""
    return not gang.constraints and not gang.topology


def allowed(
    gang: GangPart,
    pods: tuple[Member, ...],
    world: World,
    standing: tuple[Member, ...] = (),
) -> bool:
    """Say whether these pods, or some more of them, may be a gang.

    What each pod has by itself is not asked of those that have their place.
    """
    everybody = (*standing, *pods)
    return all(
        _agree(rule, pods if rule.scope == "Pod" else everybody, world)
        for rule in gang.constraints
    ) and all(
        _near(rule, everybody, world)
        for rule in gang.topology
        if rule.mode == "Required"
    )


def divided(gang: GangPart, pods: tuple[Member, ...], world: World) -> bool:
    """Say whether these pods, and no more of them, are even where a rule says so."""
    for rule in gang.topology:
        if rule.group_size != "Even":
            continue
        sizes: dict[str, dict[object, int]] = {}
        for pod in pods:
            if not rule.members or pod.name in rule.members:
                of_member = sizes.setdefault(pod.name, {})
                at = domain(rule, pod, world)
                of_member[at] = of_member.get(at, 0) + pod.stands_for
        if any(len({*of_member.values()}) > 1 for of_member in sizes.values()):
            return False
    return True


def preferences_cost(gang: GangPart, pods: tuple[Member, ...], world: World) -> int:
    """Add up what is preferred and not had."""
    total = 0
    for rule in gang.topology:
        about = [p for p in pods if p.name in (rule.members or (p.name,))]
        if rule.group_size == "Even":
            used = {(p.name, domain(rule, p, world)) for p in about}
            total += len(used) - len({p.name for p in about})
        if rule.mode == "Required":
            continue
        at = {
            p: found if (found := domain(rule, p, world)) is not None else p
            for p in about
        }
        if rule.group_size is None and rule.max_per_domain is None and about:
            total += len(set(at.values())) - 1
        if isinstance(rule.group_size, int):
            for group in {(p.name, p.index // rule.group_size) for p in about}:
                here = {
                    at[p]
                    for p in about
                    if (p.name, p.index // rule.group_size) == group
                }
                total += len(here) - 1
        if rule.max_per_domain is not None:
            for place in set(at.values()):
                pods_there = sum(p.stands_for for p in about if at[p] == place)
                total += max(0, pods_there - rule.max_per_domain)
    return total


def _agree(rule: GangConstraint, pods: tuple[Member, ...], world: World) -> bool:
    sets: dict[object, list[frozenset[tuple[str, object]]]] = {}
    seen: list[object] = []
    for pod in pods:
        which = {"Gang": None, "Member": pod.name, "Pod": pod}[rule.scope]
        for had in pod.devices:
            if rule.requests and not any(
                _means(text.split("/"), pod.name, had) for text in rule.requests
            ):
                continue
            if had.shared:
                one = (which, had.shared, had.request, had.thing.name)
                if one in seen:
                    continue
                seen.append(one)
            name = rule.match_attribute or rule.distinct_attribute or ""
            sets.setdefault(which, []).append(world.values(had.asked, name, had.thing))
    for values in sets.values():
        if frozenset() in values:
            return False
        everything = [value for one in values for value in one]
        if rule.match_attribute:
            if not any(all(value in one for one in values) for value in everything):
                return False
        elif len(everything) != len(set(everything)):
            return False
    return True


def _means(path: list[str], member: str, had: Had) -> bool:
    full = (member, had.claim.name, had.request, had.asked.name)
    return all(said == real for said, real in zip(path, full, strict=False))


def _near(rule: GangTopology, pods: tuple[Member, ...], world: World) -> bool:
    about = [p for p in pods if not rule.members or p.name in rule.members]
    at = {p: domain(rule, p, world) for p in about}
    if None in at.values():
        return False
    if rule.group_size is None and rule.max_per_domain is None:
        return len(set(at.values())) <= 1
    for one in about:
        for other in about:
            if (
                isinstance(rule.group_size, int)
                and one.name == other.name
                and one.index // rule.group_size == other.index // rule.group_size
                and at[one] != at[other]
            ):
                return False
        if rule.max_per_domain is not None:
            there = sum(p.stands_for for p in about if at[p] == at[one])
            if there > rule.max_per_domain:
                return False
    return True


def domain(rule: GangTopology, pod: Member, world: World) -> object:
    """Find where a pod is; None: nowhere."""
    if not rule.key.startswith("attribute:"):
        return pod.node.labels.get(rule.key)
    plain = SubrequestPart()
    name = rule.key[len("attribute:") :]
    values = [world.values(plain, name, had.thing) for had in pod.devices]
    having = [one for one in values if one]
    common = [v for v in having[0] if all(v in one for one in having)] if having else []
    return common[0] if len(common) == 1 else None
