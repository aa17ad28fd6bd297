"""Constraints and topology of gangs across their pods, written over kinds.

A gang whose rules span pods is a gang kind of its own. Its members are split into
*cells*: pods by index that are in the same groups of every topology rule, so that pods
of one cell are exchangeable and each rule is about whole cells. Constraints of one pod
are constraints of its member kind, and not here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Protocol

from msgspec import Struct, structs

from contracts.gang_rules import DevicePath, GangConstraint, GangTopology
from contracts.ids import FullyQualifiedName
from solver.problem.attributes import Element
from solver.problem.gangs import GangPart, MemberPart, SubrequestPart
from solver.problem.growth.standing import StandingView

POD, MEMBER = "Pod", "Member"
PREFERRED = "Preferred"


class Cell(Struct, frozen=True):
    """Pods of a member that follow each other by index and are exchangeable."""

    kind: int
    """Member kind."""
    pods: int
    least: int
    """So many of them are placed where the gang is in."""


class SetRule(Struct, frozen=True):
    """Devices of several pods that have a value in common, or none twice."""

    distinct: bool
    uses: tuple[tuple[int, int, int], ...]
    """(member kind, ask, column)."""
    each: int | None = None
    """Member kind of which each pod is a set, with what all of them share."""
    standing: tuple[tuple[Element, ...], ...] = ()
    """What devices of pods that have their place have; each is in the set."""


class DomainKey(Struct, frozen=True):
    """The label of nodes, or attribute of devices, whose values are domains."""

    label: int | None = None
    """Index into `Query.labels`."""
    column: int | None = None
    """Index into `Query.columns`, else."""


class PodsTogether(Struct, frozen=True):
    """Pods that must be in one domain, or cost for each further one."""

    key: DomainKey
    kinds: tuple[int, ...]
    """Member kinds."""
    required: bool
    standing: frozenset[Hashable] = frozenset()
    """Domains of pods of the group that have their place; None: of one without."""


class PodsSpread(Struct, frozen=True):
    """Pods of which a domain may have so many, or which cost for each further one."""

    key: DomainKey
    kinds: tuple[int, ...]
    most: int
    required: bool
    standing: tuple[tuple[Hashable, int], ...] = ()
    """Pods that have their place, by domain."""

    def room_in(self, domain: Hashable) -> int:
        """Count the further pods that a domain may have."""
        return max(self.most - dict(self.standing).get(domain, 0), 0)


class PodsEven(Struct, frozen=True):
    """Pods of a member of which each domain has none, or as many as any other.

    Each domain beyond the first costs, as where pods prefer to be together.
    """

    key: DomainKey
    kinds: tuple[int, ...]


class ClaimShared(Struct, frozen=True):
    """A claim of which pods on several nodes must reach every device."""

    claim: int
    """Member kind that stands for it."""
    users: tuple[int, ...]
    """Member kinds of the pods."""


class GangRules(Struct, frozen=True):
    """The rules of one gang that span pods."""

    gang: int
    sets: tuple[SetRule, ...] = ()
    placed: tuple[tuple[DomainKey, tuple[int, ...]], ...] = ()
    """Pods that must have a domain, by member kind."""
    together: tuple[PodsTogether, ...] = ()
    spread: tuple[PodsSpread, ...] = ()
    even: tuple[PodsEven, ...] = ()
    shared: tuple[ClaimShared, ...] = ()
    has_preferences: bool = False
    """True if some topology is preferred, or few domains are, even at no cost."""


class DomainQuery(Protocol):
    """Finds the keys of topology rules in the query of a batch."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of nodes."""
        ...

    def column_of_attribute(self, name: str) -> int:
        """Find the column of what drivers publish under a name."""
        ...


Cells = Sequence[tuple[Cell, ...]]
"""By member."""
Scope = tuple[tuple[int, int], ...]
"""(ask, column) of devices that are compared."""
Uses = tuple[tuple[int, int, int], ...]
"""(member kind, ask, column)."""


class ScopeOf(Protocol):
    """Finds what a constraint names of the members of a gang."""

    def __call__(
        self,
        constraint: GangConstraint,
        gang: GangPart,
        number: int,
        user: int | None = None,
    ) -> Scope:
        """Find what it names of a member; `user`: as this member calls the claim."""
        ...


def build_rules(
    index: int, gang: GangPart, cells: Cells, query: DomainQuery, scope_of: ScopeOf
) -> GangRules:
    """Write the rules of a gang that span pods over its cells."""
    sets = list[SetRule]()
    for number in range(len(gang.constraints)):
        sets.extend(_SetRules(number, gang, cells, scope_of).make())
    pods = [number not in gang.claim_members for number in range(len(cells))]
    placed, together, spread = [], list[PodsTogether](), list[PodsSpread]()
    even = list[PodsEven]()
    for number, rule in enumerate(gang.topology):
        key = _key_of(rule, query)
        required = rule.mode != PREFERRED
        named = [
            (member, own)
            for member, own, is_pod in zip(gang.members, cells, pods, strict=True)
            if is_pod and rule.is_about(member.name)
        ]
        standing = StandingView(gang.standing_rules, number, rule)
        kinds = tuple(cell.kind for _, own in named for cell in own)
        if required:
            placed.append((key, kinds))
        if rule.group_size is None and rule.max_per_domain is None:
            together.append(PodsTogether(key, kinds, required, standing.domains()))
        elif rule.is_even:
            even.extend(
                PodsEven(key, tuple(cell.kind for cell in own)) for _, own in named
            )
        elif rule.size is not None and rule.size > 1:
            together.extend(
                PodsTogether(
                    key, group, required, standing.domains_of(member.name, place)
                )
                for member, own in named
                for place, group in _list_groups(own, rule.size, member.first)
            )
        if rule.max_per_domain is not None:
            most = rule.max_per_domain
            spread.append(PodsSpread(key, kinds, most, required, standing.counts()))
    return GangRules(
        index,
        tuple(sets),
        tuple(placed),
        tuple(together),
        tuple(spread),
        tuple(even),
        tuple(
            ClaimShared(
                cells[claim.member][0].kind,
                tuple(cell.kind for user, _ in claim.users for cell in cells[user]),
            )
            for claim in gang.separated
        ),
        has_preferences=any(
            rule.mode == PREFERRED or rule.is_even for rule in gang.topology
        ),
    )


class _SetRules:
    """Makes the sets of devices that one constraint is about."""

    def __init__(
        self,
        number: int,
        gang: GangPart,
        cells: Cells,
        scope_of: ScopeOf,
    ) -> None:
        self._number = number
        self._constraint = gang.constraints[number]
        self._gang = gang
        self._cells = cells
        self._scope_of = scope_of

    def make(self) -> Iterator[SetRule]:
        """Make one set for the gang, or one for each member, or what pods share."""
        distinct = self._constraint.match_attribute is None
        numbers = range(len(self._cells))
        if self._constraint.scope not in (POD, MEMBER):
            uses = tuple(chain.from_iterable(map(self._uses_of, numbers)))
            if uses:
                yield SetRule(distinct, uses, standing=self._list_standing(""))
            return
        for number in sorted(set(numbers) - self._gang.claim_members):
            own, shared = self._uses_of(number), self._list_shared(number)
            if self._constraint.scope == MEMBER:
                if own or shared:
                    standing = self._list_standing(self._gang.members[number].name)
                    yield SetRule(distinct, (*own, *shared), standing=standing)
            elif shared:
                # Of a pod alone it is a constraint of its kind.
                for kind in dict.fromkeys(kind for kind, _, _ in own):
                    mine = tuple(use for use in own if use[0] == kind)
                    yield SetRule(distinct, (*mine, *shared), each=kind)
                if not own:
                    yield SetRule(distinct, shared)

    def _list_standing(self, member: str) -> tuple[tuple[Element, ...], ...]:
        """List the values of devices in a set that pods with a place have."""
        place = (self._number, member)
        sets = self._gang.standing_rules.sets
        found = (s.values for s in sets if (s.constraint, s.member) == place)
        return next(found, ())

    def _uses_of(self, number: int, user: int | None = None) -> Uses:
        return tuple(
            (cell.kind, ask, column)
            for cell in self._cells[number]
            for ask, column in self._scope_of(
                self._constraint, self._gang, number, user
            )
        )

    def _list_shared(self, user: int) -> Uses:
        """List what the constraint names of the claims that a member's pods share."""
        return tuple(
            use
            for claim in self._gang.separated
            if user in dict(claim.users)
            for use in self._uses_of(claim.member, user)
        )


def _key_of(rule: GangTopology, query: DomainQuery) -> DomainKey:
    if rule.attribute is None:
        return DomainKey(label=query.labels.index(rule.key))
    return DomainKey(column=query.column_of_attribute(rule.attribute))


def _list_groups(
    cells: tuple[Cell, ...], size: int, first: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the groups of a member: the number of each, the kinds of its cells.

    `first`: index of the first pod.
    """
    kinds = list[int]()
    for cell in cells:
        kinds.append(cell.kind)
        first += cell.pods
        if first % size == 0 or cell is cells[-1]:
            yield (first - 1) // size, tuple(kinds)
            kinds.clear()


def spans_pods(gang: GangPart) -> bool:
    """True if a gang has rules that are not about single pods."""
    return bool(gang.topology or gang.separated) or any(
        constraint.scope != POD for constraint in gang.constraints
    )


def without_spanning_rules(gang: GangPart) -> GangPart:
    """Leave out the rules of a gang that are not about single pods.

    A shared claim is left out as well, and pods that have nothing else: patterns are of
    pods that use something up.
    """
    own = tuple(c for c in gang.constraints if c.scope == POD)
    gang = structs.replace(gang, constraints=own, topology=())
    if not gang.separated:
        return gang
    pods = [
        member
        for number, member in enumerate(gang.members)
        if number not in gang.claim_members
    ]
    using = tuple(member for member in pods if member.claims)
    return structs.replace(gang, members=using or tuple(pods), separated=())


def list_labels(gangs: Iterable[GangPart]) -> tuple[str, ...]:
    """List the labels of nodes that topology rules name; sorted."""
    rules = (rule for gang in gangs for rule in gang.topology)
    return tuple(sorted({rule.key for rule in rules if rule.attribute is None}))


def list_spanning_attributes(gang: GangPart) -> Iterator[tuple[str, bool]]:
    """Yield the attributes that are compared between nodes.

    With each: whether what requests derive counts for it.
    """
    for constraint in gang.constraints:
        if constraint.scope != POD or gang.separated:
            yield attribute_of(constraint), True
    for rule in gang.topology:
        if rule.attribute is not None:
            yield rule.attribute, False


def attribute_of(constraint: GangConstraint) -> FullyQualifiedName:
    """Return the attribute that a constraint compares."""
    name = constraint.match_attribute or constraint.distinct_attribute
    return name or FullyQualifiedName("")


def list_paths(
    gang: GangPart, number: int, user: int | None = None
) -> Iterator[tuple[tuple[DevicePath, ...], SubrequestPart]]:
    """Yield the alternatives of a member, with the paths that name their devices.

    Those of a shared claim are named by each member whose pods share it; `user`: as
    this one names them.
    """
    member = gang.members[number]
    shared = next((c for c in gang.separated if c.member == number), None)
    for claim in member.claims:
        names = [(member.name, claim.name)]
        if shared is not None:
            names = [
                (gang.members[each].name, name)
                for each, name in shared.users
                if user in (None, each)
            ]
        for request in claim.requests:
            for sub in request.alternatives:
                yield (
                    tuple(
                        DevicePath(owner, name, request.name, sub.name)
                        for owner, name in names
                    ),
                    sub,
                )


def names_path(constraint: GangConstraint, paths: Iterable[DevicePath]) -> bool:
    """True if a constraint is about the devices of an alternative, by any path."""
    return not constraint.requests or any(
        DevicePath.parse(text).covers(path)
        for text in constraint.requests
        for path in paths
    )


def is_sorted_by_devices(gang: GangPart, member: MemberPart) -> bool:
    """True if the domain of a pod follows from its devices."""
    return any(
        rule.attribute is not None and rule.is_about(member.name)
        for rule in gang.topology
    )


def least_of_cell(member: MemberPart, first: int, pods: int) -> int:
    """Count the pods of a cell, from an index on, without which the gang is not in."""
    return min(max(member.least - first, 0), pods)


def split_into_cells(gang: GangPart, member: MemberPart) -> tuple[int, ...]:
    """Split a member by index where a group of some topology rule ends: pods of each.

    Groups of one pod split nothing: a pod is in one domain anyway.
    """
    ends = {member.count}
    for rule in gang.topology:
        size = rule.size
        if size is not None and size > 1 and rule.is_about(member.name):
            ends.update(range(size - member.first % size, member.count, size))
    starts = [0, *sorted(ends)]
    return tuple(end - start for start, end in pairwise(starts))
