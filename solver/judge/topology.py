"""What gangs ask of their pods: enough of them, constraints and topology.

Looks at the devices that the pods of one gang got and at the labels of their nodes,
pod by pod; shares nothing with how the models count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from contracts.device import Device
from contracts.gang_rules import GangConstraint, GangTopology
from contracts.ids import DeviceID
from contracts.messages import MemberAllocated
from solver.judge.facts import Facts, Violations
from solver.judge.uses import Use
from solver.problem.gangs import GangPart, MemberPart, SubrequestPart
from solver.snapshot.parts import NodePart

Value = tuple[str, object]
"""(type, value) of an attribute."""
Domain = tuple[object, ...]


class Had(Struct, frozen=True):
    """A device that a pod of a gang has."""

    path: tuple[str, ...]
    """Member, claim, request and subrequest that it was given for."""
    subrequest: SubrequestPart
    name: DeviceID
    device: Device
    shared: str = ""
    """The ResourceClaim, if several pods share it."""


class GangPod(Struct, frozen=True, eq=False):
    """One pod of a gang that is in."""

    member: str
    index: int
    node: NodePart
    devices: tuple[Had, ...]
    count: int = 1
    """How many pods it stands for."""

    def __str__(self) -> str:
        return f"{self.member}/{self.index}"


def placed_pod(
    part: MemberPart, index: int, node: NodePart, uses: Iterable[Use]
) -> GangPod:
    """Return a pod that a decision places, with what it gets."""
    had = []
    for use in uses:
        claim = part.claims[use.claim]
        request = claim.requests[use.request].name
        path = (part.name, claim.name, request, use.subrequest.name)
        had.append(Had(path, use.subrequest, use.device, use.facts.device, use.shared))
    count = part.resources.get("pods", 1)
    return GangPod(part.name, index, node, tuple(had), count)


def standing_pods(facts: Facts, gang: GangPart) -> list[GangPod]:
    """List the pods of a gang that have their place; unknown devices are empty."""
    pods = []
    for pod in gang.standing:
        had = []
        for held in pod.devices:
            request, _, alternative = held.request.partition("/")
            asked = SubrequestPart(derived_attributes=held.derived_attributes)
            device = facts.read_device(held.device) or Device(name=held.device.device)
            path = (pod.member, held.claim, request, alternative)
            had.append(Had(path, asked, held.device, device))
        node = facts.find_node(pod.node)
        pods.append(GangPod(pod.member, pod.index, node, tuple(had), pod.pods))
    return pods


def gang_is_whole(gang: GangPart, pods: Sequence[MemberAllocated]) -> Violations:
    """Each member has enough pods, the first by index, each once."""
    indices_by_member: dict[str, list[int]] = {each.name: [] for each in gang.members}
    for pod in pods:
        indices_by_member.setdefault(pod.member, []).append(pod.index)
    limits = {
        each.name: (_least_of(each), each.count, each.first) for each in gang.members
    }
    for name, indices in indices_by_member.items():
        least, most, first = limits.get(name, (0, 0, 0))
        follow = list(range(first, first + len(indices)))
        if sorted(indices) != follow or len(indices) > most:
            yield f"gangIsWhole: {gang.name} has other pods than it asked for"
        elif len(indices) < least:
            yield f"gangIsWhole: {gang.name} has {len(indices)} of {least} {name}"


def count_extra(gang: GangPart, pods: Sequence[MemberAllocated]) -> int:
    """Count the devices that pods beyond the least ask for, as a weight counts them.

    A pod that asks for none counts as one.
    """
    extra = 0
    for member in gang.members:
        placed = sum(pod.member == member.name for pod in pods)
        firsts = [r.alternatives[0] for claim in member.claims for r in claim.requests]
        asked = sum(1 if first.all_devices else first.count for first in firsts)
        extra += max(placed - _least_of(member), 0) * max(asked, 1)
    return extra


def _least_of(member: MemberPart) -> int:
    return member.count if member.min_count is None else member.min_count


def judge_gang(
    facts: Facts,
    gang: GangPart,
    pods: Sequence[GangPod],
    standing: Sequence[GangPod] = (),
) -> Violations:
    """Judge the new pods of a gang by its own rules, with those that have a place."""
    for constraint in gang.constraints:
        beside = () if constraint.scope == "Pod" else standing
        yield from _constraint_holds(facts, gang, constraint, [*beside, *pods])
    for topology in gang.topology:
        if topology.mode == "Required":
            yield from _topology_holds(facts, gang, topology, [*standing, *pods])


def preference_cost(facts: Facts, gang: GangPart, pods: Sequence[GangPod]) -> int:
    """Count what the topology of one gang that is in costs.

    What is preferred, and the domains over which pods are even, less one.
    """
    cost = 0
    for topology in gang.topology:
        named = _list_named(topology, pods)
        if topology.group_size == "Even":
            parts = _count_even(facts, topology, named)
            cost += sum(max(len(counts) - 1, 0) for counts in parts.values())
        if topology.mode != "Preferred":
            continue
        domains = [
            _find_domain(facts, topology, pod) or ("alone", pod) for pod in named
        ]
        places = dict(zip(named, domains, strict=True))
        if topology.group_size is None and topology.max_per_domain is None:
            cost += max(len(set(domains)) - 1, 0)
        if isinstance(topology.group_size, int):
            for group in _list_groups(topology.group_size, named):
                cost += len({places[pod] for pod in group}) - 1
        if topology.max_per_domain is not None:
            for count in _count_pods(places).values():
                cost += max(count - topology.max_per_domain, 0)
    return cost


# --- constraints across claims and pods ---------------------------------------------


def _constraint_holds(
    facts: Facts, gang: GangPart, rule: GangConstraint, pods: Sequence[GangPod]
) -> Violations:
    """In each set all devices have the attribute: one in common, or none twice."""
    name = rule.match_attribute or rule.distinct_attribute or ""
    values_by_set: dict[str, list[set[Value]]] = {}
    counted = set[tuple[object, ...]]()
    for pod in pods:
        key = {"Pod": str(pod), "Member": pod.member}.get(rule.scope, "")
        for had in pod.devices:
            if rule.requests and not any(
                _path_names(path, had) for path in rule.requests
            ):
                continue
            # What several pods of a set share is one device.
            same = (key, had.shared, had.path[2], had.name)
            if had.shared and same in counted:
                continue
            counted.add(same)
            values = facts.compared_values(
                had.subrequest, name, had.name.driver, had.device
            )
            values_by_set.setdefault(key, []).append(values)
    for key, listed in values_by_set.items():
        subject = f"{gang.name}/{key}".rstrip("/")
        if not all(listed):
            yield f"gangAttributePresent: {subject} has a device without {name}"
        elif rule.match_attribute is not None:
            if not set.intersection(*listed):
                yield f"gangAttributesMatch: {subject} has no value of {name} in common"
        elif len(set().union(*listed)) < sum(map(len, listed)):
            yield f"gangAttributesDistinct: {subject} repeats a value of {name}"


def _path_names(path: str, had: Had) -> bool:
    """True if a path names what a device was given for."""
    said = tuple(path.split("/"))
    return had.path[: len(said)] == said


# --- topology -----------------------------------------------------------------------


def _topology_holds(
    facts: Facts, gang: GangPart, rule: GangTopology, pods: Sequence[GangPod]
) -> Violations:
    """Every named pod has a domain; those of a group have one, none has too many."""
    named = _list_named(rule, pods)
    domains = {pod: _find_domain(facts, rule, pod) for pod in named}
    for pod, domain in domains.items():
        if domain is None:
            yield f"podHasDomain: {gang.name}/{pod} has no {rule.key}"
    is_plain = rule.group_size is None and rule.max_per_domain is None
    if is_plain and len(set(domains.values())) > 1:
        yield f"podsTogether: {gang.name} is in several domains of {rule.key}"
    if rule.group_size == "Even":
        for member, counts in _count_even(facts, rule, named).items():
            if len(set(counts.values())) > 1:
                yield f"podsEven: {gang.name}/{member} is uneven over {rule.key}"
    elif rule.group_size is not None:
        for group in _list_groups(rule.group_size, named):
            if len({domains[pod] for pod in group}) > 1:
                first = f"{gang.name}/{group[0]}"
                yield f"groupTogether: that of {first} is in several of {rule.key}"
    if rule.max_per_domain is not None:
        for domain, count in _count_pods(domains).items():
            if count > rule.max_per_domain:
                where = f"{rule.key}={domain[-1] if domain else None}"
                yield f"domainNotCrowded: {gang.name} has {count} pods in {where}"


def _list_named(rule: GangTopology, pods: Sequence[GangPod]) -> list[GangPod]:
    return [pod for pod in pods if not rule.members or pod.member in rule.members]


def _list_groups(size: int, pods: Sequence[GangPod]) -> Iterator[list[GangPod]]:
    """Sort pods into the groups of their member, by index."""

    def group_of(pod: GangPod) -> tuple[str, int]:
        return pod.member, pod.index // size

    for _, group in groupby(sorted(pods, key=group_of), group_of):
        yield list(group)


def _count_even(
    facts: Facts, rule: GangTopology, pods: Sequence[GangPod]
) -> dict[str, Counter[Domain]]:
    """Count the pods of each member by domain."""
    counts: dict[str, Counter[Domain]] = {}
    for pod in pods:
        domain = _find_domain(facts, rule, pod) or ()
        counts.setdefault(pod.member, Counter())[domain] += pod.count
    return counts


def _count_pods(domains: Mapping[GangPod, Domain | None]) -> Counter[Domain]:
    counts = Counter[Domain]()
    for pod, domain in domains.items():
        counts[domain or ()] += pod.count
    return counts


def _find_domain(facts: Facts, rule: GangTopology, pod: GangPod) -> Domain | None:
    """Find the domain of a pod; None: it has none."""
    prefix, colon, attribute = rule.key.partition(":")
    if prefix != "attribute" or not colon:
        value = pod.node.labels.get(rule.key)
        return None if value is None else ("label", value)
    listed = [
        facts.published_values(attribute, had.name.driver, had.device)
        for had in pod.devices
    ]
    listed = [values for values in listed if values]
    common = set.intersection(*listed) if listed else set()
    return ("attribute", *common) if len(common) == 1 else None
