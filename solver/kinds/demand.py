"""What the batch asks for, counted by kinds.

Requests that mean the same devices are one request kind, pods with equal claims one
member kind, gangs with equal members, priority and weight one gang kind. The models
only ever see kinds; names come back when an answer is extracted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain

from msgspec import Struct, structs

from contracts.gang_rules import GangConstraint
from solver.kinds.node_fit import fit_of, needs_of
from solver.kinds.query import column_of, list_named, make_query, request_kind_of
from solver.kinds.topology import (
    POD,
    Cell,
    attribute_of,
    build_rules,
    is_sorted_by_devices,
    least_of_cell,
    list_paths,
    names_path,
    spans_pods,
    split_into_cells,
)
from solver.problem.affinity.rules import DomainRule
from solver.problem.gangs import ClaimPart, GangPart, MemberPart, SubrequestPart
from solver.problem.problem import (
    DEVICE,
    ExpectedPart,
    asks_for_shares,
    keep_countable,
)

MORE = 4
"""How much more the first device's worth counts for pods that take shares of one."""


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
    compared: tuple[tuple[int, int], ...] = ()
    """(ask, column): what its gang compares between pods, so devices must have it."""
    cell: tuple[int, int, int] | None = None
    """(gang, member, cell) where rules of its gang set the pods apart from others."""
    is_single: bool = False
    """True if it matters which of its pods has which devices."""

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

    @property
    def worth(self) -> int:
        """Count what one of its pods is worth beyond the least; at least 1."""
        return max(self.asked, 1)


class GangKind(Struct, frozen=True, cache_hash=True):
    """Gangs of equal worth that need the same."""

    priority: int
    weight: int
    members: tuple[tuple[int, int], ...]
    """(member kind, pods), ascending: the pods without which the gang is not in."""
    extra: tuple[tuple[int, int], ...] = ()
    """(member kind, pods) of those that may be there besides."""


class ExpectedKind(Struct, frozen=True):
    """A kind of pod that is likely to come; see `ExpectedPart`."""

    member: MemberKind
    """Only what is counted of it: first choices that ask for some devices, and
    matchAttribute."""
    weight: int
    size: int
    more: int
    """How much more its first device's worth of room counts on a node."""


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
        expected = tuple(expected)
        countable = [keep_countable(part.member) for part in expected]
        # First all that some pod asks, so that kinds can be written as indices into it.
        self.query = make_query(self.gangs, countable, is_exact=is_exact)
        self._request_index = {kind: i for i, kind in enumerate(self.query.requests)}
        self._fit_index = {fit: i for i, fit in enumerate(self.query.fits)}
        self._column_index = {column: i for i, column in enumerate(self.query.columns)}
        # Then the members: those that need the same are one kind, numbered as met.
        numbers: dict[MemberKind, int] = {}
        self.cells_of = tuple(
            tuple(
                tuple(
                    Cell(numbers.setdefault(kind, len(numbers)), pods, least)
                    for kind, pods, least in self._make_cells(index, number)
                )
                for number in range(len(gang.members))
            )
            for index, gang in enumerate(self.gangs)
        )
        """By gang and member, its pods in the order of their index."""
        self.member_kinds = tuple(numbers)
        self.gang_rules = tuple(
            build_rules(index, gang, self.cells_of[index], self.query, self._scope_of)
            for index, gang in enumerate(self.gangs)
            if spans_pods(gang)
        )
        """Rules of the gangs whose rules span pods."""
        self.expected = tuple(
            ExpectedKind(
                self._member_kind(member),
                part.weight,
                part.size,
                MORE if part.size < DEVICE and asks_for_shares(member) else 0,
            )
            for member, part in zip(countable, expected, strict=True)
        )

    @property
    def has_alternatives(self) -> bool:
        """True if any pod has a choice."""
        return any(ask.rank for kind in self.member_kinds for ask in kind.asks)

    @cached_property
    def gang_kinds(self) -> dict[GangKind, list[int]]:
        """Indices of the gangs of each kind, oldest first."""
        kinds: dict[GangKind, list[int]] = {}
        for index, gang in enumerate(self.gangs):
            pods, extra = Counter[int](), Counter[int]()
            for cell in chain.from_iterable(self.cells_of[index]):
                pods[cell.kind] += cell.least
                extra[cell.kind] += cell.pods - cell.least
            key = GangKind(
                gang.priority,
                gang.weight,
                tuple(sorted((+pods).items())),
                tuple(sorted((+extra).items())),
            )
            kinds.setdefault(key, []).append(index)
        return kinds

    @cached_property
    def pods(self) -> tuple[int, ...]:
        """Pods of each member kind in the whole batch, at most."""
        counts = [0] * len(self.member_kinds)
        for cells in self.cells_of:
            for cell in chain.from_iterable(cells):
                counts[cell.kind] += cell.pods
        return tuple(counts)

    @property
    def is_elastic(self) -> bool:
        """True if any gang may be in with fewer pods than it asks for."""
        return any(kind.extra for kind in self.gang_kinds)

    def kinds_of_pods(self, gang: int) -> list[list[int]]:
        """List the kinds of all pods that a gang asks for, by member, by index."""
        return [
            [cell.kind for cell in cells for _ in range(cell.pods)]
            for cells in self.cells_of[gang]
        ]

    def _make_cells(
        self, index: int, number: int
    ) -> Iterator[tuple[MemberKind, int, int]]:
        """Yield the kinds of a member's pods, in the order of their index.

        With each: how many pods, and how many of them at least.
        """
        gang = self.gangs[index]
        member = gang.members[number]
        kind = self._member_kind(member)
        if not (gang.constraints or spans_pods(gang)):
            yield kind, member.count, member.least
            return
        own, compared = list[LocalConstraint](), set[tuple[int, int]]()
        is_single = is_sorted_by_devices(gang, member)
        for constraint in gang.constraints:
            scope = self._scope_of(constraint, gang, number)
            if constraint.scope != POD or number in gang.claim_members:
                compared.update(scope)
            elif any(
                self._scope_of(constraint, gang, claim.member, number)
                for claim in gang.separated
                if number in dict(claim.users)
            ):
                # What a pod shares is compared with what it has alone.
                compared.update(scope)
                is_single = True
            elif scope:
                own.append(LocalConstraint(constraint.match_attribute is None, scope))
        kind = structs.replace(
            kind,
            constraints=(*kind.constraints, *own),
            compared=tuple(sorted(compared)),
        )
        if not spans_pods(gang):
            yield kind, member.count, member.least
            return
        first = 0
        for cell, pods in enumerate(split_into_cells(gang, member)):
            of_cell = structs.replace(
                kind, cell=(index, number, cell), is_single=is_single
            )
            yield of_cell, pods, least_of_cell(member, first, pods)
            first += pods

    def _scope_of(
        self,
        constraint: GangConstraint,
        gang: GangPart,
        number: int,
        user: int | None = None,
    ) -> tuple[tuple[int, int], ...]:
        """List (ask, column) of what a gang's constraint names of a member's pod.

        Of a shared claim `user` is the member whose name for it counts; None: any.
        """
        name = attribute_of(constraint)
        return tuple(
            (ask, self._column_index[column_of(sub, name)])
            for ask, (paths, sub) in enumerate(list_paths(gang, number, user))
            if paths and names_path(constraint, paths)
        )

    def _member_kind(self, member: MemberPart) -> MemberKind:
        asks: list[RequestAlternative] = []
        constraints: list[LocalConstraint] = []
        request_number = 0
        for claim_number, claim in enumerate(member.claims):
            first = len(asks)
            for request in claim.requests:
                asks.extend(
                    self._list_asks(claim_number, request_number, request.alternatives)
                )
                request_number += 1
            constraints.extend(self._list_constraints(claim, first))
        return MemberKind(
            asks=tuple(asks),
            constraints=tuple(constraints),
            claims=tuple(len(claim.requests) for claim in member.claims),
            fit=self._fit_index[fit_of(member)],
            needs=needs_of(member, self.query.resources, self.query.counted),
            roles=_roles_of(member, self.query.domains),
        )

    def _list_asks(
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

    def _list_constraints(
        self, claim: ClaimPart, first: int
    ) -> Iterator[LocalConstraint]:
        for constraint in claim.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute or ""
            scope = tuple(
                (first + position, self._column_index[column_of(sub, name)])
                for position, (sub, names) in enumerate(list_named(claim))
                if not constraint.requests or names & set(constraint.requests)
            )
            if scope:
                distinct = constraint.match_attribute is None
                yield LocalConstraint(distinct, scope)


def _roles_of(member: MemberPart, domains: tuple[DomainRule, ...]) -> tuple[int, ...]:
    """Return the roles of a member in rules about domains."""
    bits = {role.rule: role.bits for role in member.resolved.roles}
    return tuple(bits.get(rule, 0) for rule in domains)
