"""What the batch asks for, with everything that cannot be told apart counted.

Requests that mean the same devices are one request kind, pods with equal claims one
member kind, gangs with equal members, priority and weight one gang kind. The models
only ever see kinds; names come back when an answer is extracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import Struct

from contracts.claim import DeviceToleration
from contracts.pods.node_resources import PODS
from solver.kinds.node_fit import (
    Load,
    NodeFit,
    Step,
    fit_of,
    needs_of,
    steps_of,
)
from solver.problem.pod_rules import CountedRule, DomainRule
from solver.problem.problem import (
    ClaimPart,
    ExpectedPart,
    GangPart,
    MemberPart,
    SubrequestPart,
    keep_countable,
)


class RequestKind(Struct, frozen=True, cache_hash=True):
    """What decides whether a device may serve a (sub)request."""

    selectors: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    all_devices: bool
    admin: bool = False
    capacity: tuple[tuple[str, int], ...] = ()
    """(name, 1e-9 units), sorted."""


class Column(Struct, frozen=True, order=True):
    """A value of devices that constraints compare."""

    attribute: str
    """Fully qualified name."""
    expression: str = ""
    """That derives it; empty: it is published."""


class Query(Struct, frozen=True, cache_hash=True):
    """What this batch wants to know of a node: all else is invisible to it."""

    requests: tuple[RequestKind, ...]
    columns: tuple[Column, ...]
    fits: tuple[NodeFit, ...] = (NodeFit(),)
    """What some pod asks of its node in kind."""
    resources: tuple[str, ...] = ()
    """Of its node's resources, those that some pod asks for; sorted."""
    counted: tuple[CountedRule, ...] = ()
    """What rules between pods make nodes have besides."""
    steps: tuple[Step, ...] = ()
    """Which amounts of them matter, by resource, then by what is counted."""
    domains: tuple[DomainRule, ...] = ()
    """Rules between pods on several nodes."""
    is_exact: bool = False
    """Whether every device is to be told apart, alike or not."""

    @property
    def is_by_device(self) -> bool:
        """Whether groups are of one device each: counts cannot say who had it first."""
        return self.is_exact or any(kind.admin for kind in self.requests)


class RequestAlternative(Struct, frozen=True):
    """One alternative of a request of a member kind."""

    claim: int
    request: int
    """Counted over all claims of the pod."""
    rank: int
    """Its place among the alternatives."""
    kind: int
    """Index into `Query.requests`."""
    count: int
    all_devices: bool
    admin: bool


class LocalConstraint(Struct, frozen=True):
    """One constraint of a claim of a member kind."""

    distinct: bool
    scope: tuple[tuple[int, int], ...]
    """(index into `MemberKind.asks`, index into `Query.columns`), ascending."""


class MemberKind(Struct, frozen=True, cache_hash=True):
    """Pods that need the same: the requests of all claims, and their constraints."""

    asks: tuple[RequestAlternative, ...]
    constraints: tuple[LocalConstraint, ...]
    claims: tuple[int, ...]
    """Requests of each claim, in order."""
    fit: int = 0
    """Index into `Query.fits`."""
    needs: tuple[int, ...] = ()
    """Amounts by `Query.resources`, then by `Query.counted`."""
    roles: tuple[int, ...] = ()
    """What it is to each of `Query.domains`, as bits."""

    def alternatives(self, request: int) -> list[int]:
        """List the asks of a request, best first."""
        return [i for i, ask in enumerate(self.asks) if ask.request == request]

    @property
    def requests(self) -> int:
        """Count the requests of all claims."""
        return sum(self.claims)

    @property
    def asked(self) -> int:
        """Count the devices of its first choices, those of `All` as one."""
        first = (ask for ask in self.asks if not ask.rank)
        return sum(1 if ask.all_devices else ask.count for ask in first)


class GangKind(Struct, frozen=True, cache_hash=True):
    """Gangs of equal worth that need the same."""

    priority: int
    weight: int
    members: tuple[tuple[int, int], ...]
    """(member kind, pods), ascending."""


class ExpectedKind(Struct, frozen=True):
    """A kind of pod that is likely to come; see `ExpectedPart`."""

    member: MemberKind
    """Only what is counted of it: first choices that ask for some devices, and
    matchAttribute."""
    weight: int
    size: int


class Demand:
    """The batch by kinds, and the kinds expected later.

    Gangs that are refused beforehand are not in it.
    """

    def __init__(
        self,
        gangs: Iterable[GangPart],
        *,
        expected: Iterable[ExpectedPart] = (),
        is_exact: bool = False,
    ) -> None:
        self.gangs = tuple(gang for gang in gangs if not gang.refused)
        batch = [member for gang in self.gangs for member in gang.members]
        expected = tuple(expected)
        countable = [keep_countable(part.member) for part in expected]
        # First all that some pod asks, so that kinds can be written as indices into it.
        self.query = _make_query(batch, countable, is_exact=is_exact)
        self._request_index = {kind: i for i, kind in enumerate(self.query.requests)}
        self._fit_index = {fit: i for i, fit in enumerate(self.query.fits)}
        self._column_index = {column: i for i, column in enumerate(self.query.columns)}
        # Then the members: those that need the same are one kind, numbered as met.
        numbers: dict[MemberKind, int] = {}
        self.member_kinds_of = tuple(
            tuple(
                numbers.setdefault(self._member_kind(member), len(numbers))
                for member in gang.members
            )
            for gang in self.gangs
        )
        """Member kind of each member of each gang."""
        self.member_kinds = tuple(numbers)
        self.expected = tuple(
            ExpectedKind(self._member_kind(member), part.weight, part.size)
            for member, part in zip(countable, expected, strict=True)
        )

    @property
    def has_alternatives(self) -> bool:
        """Whether any pod has a choice."""
        return any(ask.rank for kind in self.member_kinds for ask in kind.asks)

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
        asks: list[RequestAlternative] = []
        constraints: list[LocalConstraint] = []
        request_number = 0
        for claim_number, claim in enumerate(member.claims):
            first = len(asks)
            for request in claim.requests:
                asks.extend(
                    self._asks(claim_number, request_number, request.alternatives)
                )
                request_number += 1
            constraints.extend(self._constraints(claim, first))
        return MemberKind(
            asks=tuple(asks),
            constraints=tuple(constraints),
            claims=tuple(len(claim.requests) for claim in member.claims),
            fit=self._fit_index[fit_of(member)],
            needs=needs_of(member, self.query.resources, self.query.counted),
            roles=_roles_of(member, self.query.domains),
        )

    def _asks(
        self, claim: int, request: int, alternatives: tuple[SubrequestPart, ...]
    ) -> Iterator[RequestAlternative]:
        for rank, sub in enumerate(alternatives):
            yield RequestAlternative(
                claim=claim,
                request=request,
                rank=rank,
                kind=self._request_index[request_kind_of(sub)],
                count=0 if sub.all_devices else sub.count,
                all_devices=sub.all_devices,
                admin=sub.admin_access,
            )

    def _constraints(self, claim: ClaimPart, first: int) -> Iterator[LocalConstraint]:
        for constraint in claim.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute or ""
            scope = tuple(
                (first + position, self._column_index[_column_of(sub, name)])
                for position, (sub, names) in enumerate(_list_named(claim))
                if not constraint.requests or names & set(constraint.requests)
            )
            if scope:
                distinct = constraint.match_attribute is None
                yield LocalConstraint(distinct, scope)


def _make_query(
    batch: list[MemberPart], countable: list[MemberPart], *, is_exact: bool
) -> Query:
    """Collect what some pod asks of devices and nodes.

    `batch` are the members to be decided, `countable` what is counted of expected ones.
    """
    # What is expected comes first: it stays the same from batch to batch, and with it
    # what was read of nodes.
    members = [*countable, *batch]
    claims = [claim for member in members for claim in member.claims]
    alternatives = (
        alternative
        for claim in claims
        for request in claim.requests
        for alternative in request.alternatives
    )
    names = {name for member in members for name in (PODS, *member.resources)}
    resources = tuple(sorted(names))
    settled = [member.settled for member in batch]
    counted = tuple(dict.fromkeys(t.rule for each in settled for t in each.takes))
    domains = tuple(dict.fromkeys(r.rule for each in settled for r in each.roles))
    loads = {_load_of(member, resources, counted) for member in batch}
    loads |= {_load_of_expected(member, resources, counted) for member in countable}
    return Query(
        requests=tuple(dict.fromkeys(map(request_kind_of, alternatives))),
        columns=tuple(
            sorted({column for claim in claims for column in _list_columns(claim)})
        ),
        fits=tuple(dict.fromkeys(map(fit_of, members))),
        resources=resources,
        counted=counted,
        steps=steps_of(loads, len(resources) + len(counted)),
        domains=domains,
        is_exact=is_exact,
    )


def _roles_of(member: MemberPart, domains: tuple[DomainRule, ...]) -> tuple[int, ...]:
    """Return what a member is to each rule about domains."""
    bits = {role.rule: role.bits for role in member.settled.roles}
    return tuple(bits.get(rule, 0) for rule in domains)


def request_kind_of(sub: SubrequestPart) -> RequestKind:
    """Forget of a (sub)request what does not decide who may serve it."""
    return RequestKind(
        sub.selectors,
        sub.tolerations,
        sub.all_devices,
        sub.admin_access,
        tuple(sorted((name, amount.nano) for name, amount in sub.capacity.items())),
    )


def _load_of(
    member: MemberPart, resources: tuple[str, ...], counted: tuple[CountedRule, ...]
) -> Load:
    """Return what a pod takes of its node: devices of its own, and amounts."""
    requests = [request for claim in member.claims for request in claim.requests]
    devices = sum(
        min(map(_count_devices, request.alternatives)) for request in requests
    )
    return Load(devices, needs_of(member, resources, counted))


def _load_of_expected(
    member: MemberPart, resources: tuple[str, ...], counted: tuple[CountedRule, ...]
) -> Load:
    """Return what an expected pod counts as: its largest request alone."""
    requests = [request for claim in member.claims for request in claim.requests]
    devices = max(
        (_count_devices(request.alternatives[0]) for request in requests), default=0
    )
    return Load(devices, needs_of(member, resources, counted))


def _count_devices(sub: SubrequestPart) -> int:
    if sub.admin_access:
        return 0
    return 1 if sub.all_devices else sub.count


def _list_named(claim: ClaimPart) -> Iterator[tuple[SubrequestPart, set[str]]]:
    """Go through the alternatives of a claim, with the names that may mean them."""
    for request in claim.requests:
        for rank, sub in enumerate(request.alternatives):
            yield sub, {request.name, request.result_name(rank)}


def _list_columns(claim: ClaimPart) -> Iterator[Column]:
    for constraint in claim.constraints:
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        for sub, _ in _list_named(claim):
            yield _column_of(sub, name)


def _column_of(sub: SubrequestPart, name: str) -> Column:
    for attribute, expression in sub.derived_attributes:
        if attribute == name:
            return Column(name, expression)
    return Column(name)
