"""What the batch asks for, with everything that cannot be told apart counted.

Requests with equal selectors and tolerations are one request kind, pods with equal
claims one member kind, gangs with equal members, priority and weight one gang kind.
The models only ever see kinds; names come back when an answer is extracted.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct

from contracts.claim import DeviceToleration
from solver.problem.problem import ClaimPart, GangPart, MemberPart, RequestPart


class RequestKind(Struct, frozen=True):
    """What decides whether a device may serve a request."""

    selectors: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    all_devices: bool


class Query(Struct, frozen=True):
    """What this batch wants to know of a device: all else is invisible to it."""

    requests: tuple[RequestKind, ...]
    attributes: tuple[str, ...]
    """Fully qualified names that constraints compare."""


class LocalRequest(Struct, frozen=True):
    """One request of a member kind."""

    kind: int
    """Index into `Query.requests`."""
    count: int
    all_devices: bool


class LocalConstraint(Struct, frozen=True):
    """One constraint of a claim of a member kind."""

    attribute: int
    """Index into `Query.attributes`."""
    distinct: bool
    requests: tuple[int, ...]
    """Indices into `MemberKind.requests`, ascending."""


class MemberKind(Struct, frozen=True):
    """Pods that need the same: the requests of all claims, and their constraints."""

    requests: tuple[LocalRequest, ...]
    constraints: tuple[LocalConstraint, ...]
    claims: tuple[int, ...]
    """Requests of each claim, in order: how `requests` is divided."""


class GangKind(Struct, frozen=True):
    """Gangs of equal worth that need the same."""

    priority: int
    weight: int
    members: tuple[tuple[int, int], ...]
    """(member kind, pods), ascending."""


class Demand:
    """The batch by kinds; gangs that are refused beforehand are not in it."""

    def __init__(self, gangs: Iterable[GangPart]) -> None:
        self.gangs = tuple(gang for gang in gangs if not gang.refused)
        parts = [part for gang in self.gangs for part in gang.members]
        claims = [claim for part in parts for claim in part.claims]
        kinds = {request_kind(r): None for claim in claims for r in claim.requests}
        names = {
            constraint.match_attribute or constraint.distinct_attribute or ""
            for claim in claims
            for constraint in claim.constraints
        }
        self.query = Query(tuple(kinds), tuple(sorted(names)))
        self._request_index = {kind: i for i, kind in enumerate(self.query.requests)}
        self._attribute_index = {name: i for i, name in enumerate(sorted(names))}
        member_kinds: dict[MemberKind, int] = {}
        self.member_kinds_of = tuple(
            tuple(
                member_kinds.setdefault(self._member_kind(member), len(member_kinds))
                for member in gang.members
            )
            for gang in self.gangs
        )
        """Member kind of each member of each gang."""
        self.member_kinds = tuple(member_kinds)

    @cached_property
    def gang_kinds(self) -> dict[GangKind, list[int]]:
        """Indices of the gangs of each kind, oldest first."""
        kinds: dict[GangKind, list[int]] = {}
        for index, gang in enumerate(self.gangs):
            pods: dict[int, int] = {}
            kinds_of = self.member_kinds_of[index]
            for member, kind in zip(gang.members, kinds_of, strict=True):
                pods[kind] = pods.get(kind, 0) + member.count
            key = GangKind(gang.priority, gang.weight, tuple(sorted(pods.items())))
            kinds.setdefault(key, []).append(index)
        return kinds

    @cached_property
    def pods(self) -> tuple[int, ...]:
        """Pods of each member kind in the whole batch."""
        counts = [0] * len(self.member_kinds)
        for gang, kinds in zip(self.gangs, self.member_kinds_of, strict=True):
            for member, kind in zip(gang.members, kinds, strict=True):
                counts[kind] += member.count
        return tuple(counts)

    def _member_kind(self, member: MemberPart) -> MemberKind:
        requests: list[LocalRequest] = []
        constraints: list[LocalConstraint] = []
        for claim in member.claims:
            first = len(requests)
            requests.extend(self._local_request(r) for r in claim.requests)
            constraints.extend(self._local_constraints(claim, first))
        return MemberKind(
            requests=tuple(requests),
            constraints=tuple(constraints),
            claims=tuple(len(claim.requests) for claim in member.claims),
        )

    def _local_request(self, request: RequestPart) -> LocalRequest:
        kind = self._request_index[request_kind(request)]
        count = 0 if request.all_devices else request.count
        return LocalRequest(kind, count, request.all_devices)

    def _local_constraints(
        self, claim: ClaimPart, first: int
    ) -> Iterable[LocalConstraint]:
        position = {r.name: first + i for i, r in enumerate(claim.requests)}
        for constraint in claim.constraints:
            names = constraint.requests or tuple(position)
            distinct = constraint.match_attribute is None
            name = constraint.match_attribute or constraint.distinct_attribute or ""
            yield LocalConstraint(
                attribute=self._attribute_index[name],
                distinct=distinct,
                requests=tuple(sorted(position[n] for n in names if n in position)),
            )


def request_kind(request: RequestPart) -> RequestKind:
    """Forget of a request what does not decide who may serve it."""
    return RequestKind(request.selectors, request.tolerations, request.all_devices)
