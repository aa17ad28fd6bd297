"""Claims that several pods of a gang share, as engines decide them.

A shared claim is one allocation, so it becomes a member of its own: it is placed on the
node of one of its pods, and the other pods are on nodes from which all its devices are
reachable. Where all devices that it may get are local to nodes its pods can only be on
one: then they and their claims are one pod, which every engine knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, structs

from contracts.gang import NodeToleration
from contracts.ids import DeviceID, GangKey
from contracts.pods.members import group_connected
from contracts.pods.node_resources import PODS
from solver.devices.candidates import select_devices
from solver.devices.facts import pool_of
from solver.devices.pool_projections import pools_of
from solver.kinds.node_fit import fit_of, need_of
from solver.placement import GangPlacement, PodPlacement
from solver.problem.affinity.rules import ResolvedRules
from solver.problem.gangs import ClaimPart, GangPart, MemberPart, SeparatedClaim
from solver.problem.problem import Problem
from solver.problem.sharing import find_shared_claims

ANYWHERE = (NodeToleration(operator="Exists"),)
"""Tolerates every taint: the pods say where their claim may be."""


class ClaimPlace(Struct, frozen=True):
    """Where a pod's claim is in the gang as engines decide it."""

    member: int
    index: int
    first: int
    """Its first request among those of that pod."""
    requests: int


class PodPlace(Struct, frozen=True):
    """Where a pod is in the gang as engines decide it."""

    member: int
    index: int
    claims: tuple[ClaimPlace, ...]


class _Layout(Struct, frozen=True):
    """A gang as engines decide it, and where its pods are in that."""

    gang: GangPart
    pods: tuple[tuple[PodPlace, ...], ...]
    """By member, by index."""


class SharedClaimLayouts:
    """The gangs of a Problem as engines decide them."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._layouts: dict[GangKey, _Layout] = {}
        self._is_local: dict[tuple[str, ...], bool] = {}
        for gang in problem.gangs:
            if not gang.refused and find_shared_claims(gang.members):
                self._layouts[gang.key] = self._lay_out(gang)

    @property
    def problem(self) -> Problem:
        """The Problem with shared claims as members, or with pods put together."""
        if not self._layouts:
            return self._problem
        return self._problem.with_gangs(
            tuple(map(self.as_decided, self._problem.gangs))
        )

    def as_decided(self, gang: GangPart) -> GangPart:
        """Return a gang as engines decide it."""
        layout = self._layouts.get(gang.key)
        return gang if layout is None else layout.gang

    def join(self, gang: GangPart, placement: GangPlacement) -> GangPlacement:
        """Give each pod of a gang what was decided for it and for its claims."""
        layout = self._layouts.get(gang.key)
        if layout is None:
            return placement
        members = tuple(
            tuple(_join_pod(place, placement) for place in places)
            for places in layout.pods
        )
        return GangPlacement(placement.gang, members)

    def _lay_out(self, gang: GangPart) -> _Layout:
        if gang.constraints or gang.topology:
            return _write_layout(gang)
        together = [
            group
            for group in _group_by_shared_claims(gang)
            if self._is_on_one_node(gang, group)
        ]
        return _write_layout(gang, together)

    def _is_on_one_node(self, gang: GangPart, members: Sequence[int]) -> bool:
        """True if pods are as one: alike, and with a claim that keeps them together.

        With admin access what pods have before and after each other matters.
        """
        first, *others = (gang.members[number] for number in members)
        shared = find_shared_claims(gang.members)
        return (
            all(fit_of(other) == fit_of(first) for other in others)
            and not (first.resolved.takes or first.resolved.roles)
            and all(other.resolved == first.resolved for other in others)
            and all(
                not sub.admin_access
                for number in members
                for claim in gang.members[number].claims
                for request in claim.requests
                for sub in request.alternatives
            )
            and all(
                self._has_local_devices(claim)
                for number in members
                for claim in gang.members[number].claims
                if claim.claim_name in shared
            )
        )

    def _has_local_devices(self, claim: ClaimPart) -> bool:
        """True if a claim gets a device, and all it may get are local to one node."""
        return any(
            all(
                (sub.count or sub.all_devices) and self._are_local(sub.selectors)
                for sub in request.alternatives
            )
            for request in claim.requests
        )

    def _are_local(self, selectors: tuple[str, ...]) -> bool:
        """True if no pool that several nodes may see has a device that is selected."""
        if selectors not in self._is_local:
            self._is_local[selectors] = not any(
                select_devices(part, selectors, self._problem.selectors).bits
                for page in self._problem.pages
                for part in pools_of(page)
                if not pool_of(part).node
            )
        return self._is_local[selectors]


def _group_by_shared_claims(gang: GangPart) -> list[list[int]]:
    """Group members whose pods share claims, directly or by way of others."""
    shared = find_shared_claims(gang.members)

    def keys_of(number: int) -> Iterator[str]:
        return (
            c.claim_name for c in gang.members[number].claims if c.claim_name in shared
        )

    sharing = (n for n in range(len(gang.members)) if any(keys_of(n)))
    return group_connected(sharing, keys_of)


def _write_layout(gang: GangPart, together: Sequence[Sequence[int]] = ()) -> _Layout:
    """Lay out a gang: shared claims as members, members `together` as one pod."""
    return _LayoutWriter(gang, together).write()


class _LayoutWriter:
    """Writes the layout of one gang, as engines decide it; `write` once."""

    def __init__(self, gang: GangPart, together: Sequence[Sequence[int]]) -> None:
        self._gang = gang
        self._shared = find_shared_claims(gang.members)
        self._group_of = {number: group for group in together for number in group}
        self._members: list[MemberPart] = []
        self._place_of: dict[str, ClaimPlace] = {}
        """By the name of a shared claim."""

    def write(self) -> _Layout:
        """Write all members, those of claims last."""
        pods: dict[int, tuple[PodPlace, ...]] = {}
        places: dict[int, int] = {}
        for number, member in enumerate(self._gang.members):
            group = self._group_of.get(number)
            if group is None:
                places[number] = len(self._members)
                own = tuple(
                    c for c in member.claims if c.claim_name not in self._shared
                )
                self._members.append(structs.replace(member, claims=own))
            elif number == group[0]:
                pods.update(self._put_together(group))
        claims = tuple(self._separate_shared_claims(places))
        for number, place in places.items():
            pods[number] = tuple(self._list_pods(number, place))
        decided = structs.replace(
            self._gang, members=tuple(self._members), separated=claims
        )
        return _Layout(decided, tuple(pods[n] for n in range(len(self._gang.members))))

    def _put_together(
        self, group: Sequence[int]
    ) -> Iterator[tuple[int, tuple[PodPlace, ...]]]:
        """Make one pod of all pods of some members, each shared claim once."""
        place, claims = len(self._members), list[ClaimPart]()
        names, needs, first = set[str](), Counter[str](), 0
        for number in group:
            member, pods = self._gang.members[number], list[PodPlace]()
            for name in {PODS, *member.resources}:
                needs[name] += member.count * need_of(member, name)
            for _ in range(member.count):
                listed = []
                for claim in member.claims:
                    found = self._place_of.get(claim.claim_name)
                    if found is None:
                        found = ClaimPlace(place, 0, first, len(claim.requests))
                        first += len(claim.requests)
                        claims.append(_rename_claim(claim, names))
                        if claim.claim_name in self._shared:
                            self._place_of[claim.claim_name] = found
                    listed.append(found)
                pods.append(PodPlace(place, 0, tuple(listed)))
            yield number, tuple(pods)
        member = structs.replace(
            self._gang.members[group[0]],
            count=1,
            claims=tuple(claims),
            resources=dict(sorted(needs.items())),
        )
        self._members.append(member)

    def _separate_shared_claims(
        self, places: Mapping[int, int]
    ) -> Iterator[SeparatedClaim]:
        """Count each claim that members share as a member of its own."""
        parts: dict[str, ClaimPart] = {}
        users: dict[str, list[tuple[int, str]]] = {}
        for number, place in places.items():
            for claim in self._gang.members[number].claims:
                if claim.claim_name in self._shared:
                    parts.setdefault(claim.claim_name, claim)
                    users.setdefault(claim.claim_name, []).append((place, claim.name))
        for name, part in parts.items():
            place = len(self._members)
            of_users = [self._members[user] for user, _ in users[name]]
            self._members.append(_stand_for(name, part, of_users))
            self._place_of[name] = ClaimPlace(place, 0, 0, len(part.requests))
            yield SeparatedClaim(place, tuple(users[name]))

    def _list_pods(self, number: int, place: int) -> Iterator[PodPlace]:
        member = self._gang.members[number]
        for index in range(member.count):
            claims, first = [], 0
            for claim in member.claims:
                found = self._place_of.get(claim.claim_name)
                if found is None:
                    found = ClaimPlace(place, index, first, len(claim.requests))
                    first += len(claim.requests)
                claims.append(found)
            yield PodPlace(place, index, tuple(claims))


def _stand_for(name: str, claim: ClaimPart, users: Sequence[MemberPart]) -> MemberPart:
    """Make the member of a shared claim; it asks its node for devices alone.

    It is where one of its pods is: where they are alike, nowhere else need be looked.
    """
    member = MemberPart(
        name=f"claim {name}",
        claims=(claim,),
        resources={PODS: 0},
        tolerations=ANYWHERE,
    )
    first = users[0]
    if any(fit_of(user) != fit_of(first) for user in users[1:]):
        return member
    return structs.replace(
        member,
        node_name=first.node_name,
        extended_resources=first.extended_resources,
        features=first.features,
        node_selector=first.node_selector,
        affinity=first.affinity,
        tolerations=first.tolerations,
        resolved=ResolvedRules(node_sets=first.resolved.node_sets),
    )


def _rename_claim(claim: ClaimPart, names: set[str]) -> ClaimPart:
    """Make a claim's name unique by a number."""
    name, number = claim.name, 0
    while name in names:
        number += 1
        name = f"{claim.name}-{number}"
    names.add(name)
    return structs.replace(claim, name=name)


def _join_pod(place: PodPlace, placement: GangPlacement) -> PodPlacement:
    """Put together what a pod has: its own, and that of the claims that it shares."""
    devices, alternatives = list[tuple[DeviceID, ...]](), list[int]()
    for claim in place.claims:
        source = placement.members[claim.member][claim.index]
        last = claim.first + claim.requests
        devices.extend(source.devices[claim.first : last])
        alternatives.extend(source.alternatives[claim.first : last])
    node = placement.members[place.member][place.index].node
    return PodPlacement(node, tuple(devices), tuple(alternatives))
