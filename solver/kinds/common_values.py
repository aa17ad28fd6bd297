"""Which gangs no values of what their devices must have in common can serve, counted.

A `matchAttribute` across pods gives all devices that it names one value. Values are
chosen constraint by constraint, and what lacks one is left out for those that follow:
where too few devices are left on all nodes together, no choice that begins so serves
the gang. An upper bound: what pods take from each other beyond that is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from solver.kinds.counting import PLENTY, bound_pods, bound_uses, is_counted
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.shapes import NodeShape
from solver.kinds.topology import GangRules, SetRule
from solver.problem.attributes import Element

MOST_LOOKED = 1_000_000
"""Groups of devices looked at for a batch; gangs after that count as served."""

_GroupUses = tuple[tuple[int, tuple[tuple[Element, ...], ...]], ...]
"""Uses of each group of devices for one ask, and the group's values by column."""


class _NodeUses(Struct, frozen=True):
    """What nodes of one shape have for the pods of a kind."""

    nodes: int
    most: int
    """Pods on each of them, at most."""
    uses: tuple[tuple[int, _GroupUses], ...]
    """By ask: the groups that serve it with the values chosen so far."""


class _PodsAlike(Struct, frozen=True):
    """Pods of a gang that need the same, whichever cells they are in."""

    member: MemberKind
    pods: int
    scopes: tuple[tuple[tuple[int, int], ...], ...]
    """By constraint: (ask, place of its column in `Query.named`)."""


class _LookedEnoughError(Exception):
    """So much was looked at that it is not known."""


class CommonValues:
    """Looks for values that gangs of a batch can have in common."""

    def __init__(self, demand: Demand, nodes: Mapping[NodeShape, int]) -> None:
        """`nodes`: how many there are of each shape."""
        self._demand = demand
        self._nodes = nodes
        self._left = MOST_LOOKED
        self._known: dict[object, int] = {}

    def list_unserved(self) -> list[int]:
        """List the gangs that no values can serve."""
        return [
            rules.gang
            for rules in self._demand.gang_rules
            if self.find_unserved(rules) is not None
        ]

    def find_unserved(self, rules: GangRules) -> tuple[SetRule, ...] | None:
        """Return the first constraints of a gang that no values meet together.

        None: some may meet them all, as far as counting knows.
        """
        sets = [each for each in rules.sets if not each.distinct and each.each is None]
        parts = self._list_pods(rules.gang, sets)
        standing = tuple(each.standing for each in sets)
        key = (parts, standing)
        if key not in self._known:
            self._known[key] = self._count_met(parts, standing)
        met = self._known[key]
        return None if met == len(sets) else tuple(sets[: met + 1])

    def _list_pods(self, gang: int, sets: Iterable[SetRule]) -> tuple[_PodsAlike, ...]:
        """List the pods without which a gang is not in, by what they need."""
        demand, named = self._demand, self._demand.query.named
        pods = Counter[tuple[MemberKind, tuple[tuple[tuple[int, int], ...], ...]]]()
        least = Counter[int]()
        for cells in demand.cells_of[gang]:
            for cell in cells:
                least[cell.kind] += cell.least
        for kind, count in least.items():
            member = demand.member_kinds[kind]
            scopes = tuple(
                tuple(
                    (ask, named.index(column))
                    for number, ask, column in each.uses
                    if number == kind and is_counted(member, ask)
                )
                for each in sets
            )
            if count and any(scopes):
                pods[structs.replace(member, cell=None), scopes] += count
        return tuple(
            _PodsAlike(member, count, scopes)
            for (member, scopes), count in pods.items()
        )

    def _count_met(
        self,
        parts: tuple[_PodsAlike, ...],
        standing: tuple[tuple[tuple[Element, ...], ...], ...],
    ) -> int:
        """Count the constraints, from the first on, that some values meet together."""
        if not parts or self._left < 0:
            return len(standing)
        search = _ValueSearch(parts, standing, self._left)
        try:
            search.choose(0, tuple(self._list_nodes(part) for part in parts))
        except _LookedEnoughError:
            search.met = len(standing)
        self._left = search.left
        return search.met

    def _list_nodes(self, part: _PodsAlike) -> tuple[_NodeUses, ...]:
        """List the nodes that have room for some of the pods."""
        asks = sorted({ask for scope in part.scopes for ask, _ in scope})
        found = list[_NodeUses]()
        for shape, nodes in self._nodes.items():
            most = min(bound_pods(part.member, shape), part.pods)
            if most:
                uses = tuple((ask, _list_uses(shape, part.member, ask)) for ask in asks)
                found.append(_NodeUses(nodes, most, uses))
        return tuple(found)


class _ValueSearch:
    """Chooses values for one gang, constraint by constraint."""

    def __init__(
        self,
        parts: tuple[_PodsAlike, ...],
        standing: tuple[tuple[tuple[Element, ...], ...], ...],
        left: int,
    ) -> None:
        self._parts = parts
        self._standing = standing
        self.left = left
        """Groups that may still be looked at."""
        self.met = 0
        """Constraints, from the first on, that some values were found to meet."""

    def choose(self, number: int, tables: tuple[tuple[_NodeUses, ...], ...]) -> bool:
        """Choose values for this constraint and all that follow; False: none will do.

        Raises:
            _LookedEnoughError: too much was looked at.
        """
        self.met = max(self.met, number)
        if number == len(self._standing):
            return True
        if not any(part.scopes[number] for part in self._parts):
            return self.choose(number + 1, tables)
        return any(
            self.choose(number + 1, self._keep(number, value, tables))
            for value in self._list_values(number, tables)
        )

    def _list_values(
        self, number: int, tables: tuple[tuple[_NodeUses, ...], ...]
    ) -> list[Element]:
        """List the values of which there is enough for all pods, best first."""
        rooms: dict[Element, int] | None = None
        for part, table in zip(self._parts, tables, strict=True):
            scope = part.scopes[number]
            if not scope:
                continue
            own = self._count_rooms(part, scope, table)
            rooms = {
                value: min(room, own[value]) if rooms is None else rooms[value]
                for value, room in (own if rooms is None else rooms).items()
                if own.get(value, 0) >= part.pods
            }
        values = sorted(rooms or {}, key=lambda value: -(rooms or {})[value])
        standing = self._standing[number]
        return [v for v in values if all(v in having for having in standing)]

    def _count_rooms(
        self,
        part: _PodsAlike,
        scope: tuple[tuple[int, int], ...],
        table: tuple[_NodeUses, ...],
    ) -> dict[Element, int]:
        """Count by value the pods whose devices for each of these asks may have it."""
        rooms = Counter[Element]()
        for node in table:
            least: dict[Element, int] | None = None
            uses = dict(node.uses)
            for ask, position in scope:
                self._look(len(uses[ask]))
                sums = dict[Element, int]()
                for use, elements in uses[ask]:
                    for value in dict.fromkeys(elements[position]):
                        sums[value] = sums.get(value, 0) + use
                count = part.member.asks[ask].count
                least = {
                    value: min(use // count, least[value] if least else PLENTY)
                    for value, use in sums.items()
                    if least is None or value in least
                }
            for value, room in (least or {}).items():
                rooms[value] += min(room, node.most) * node.nodes
        return rooms

    def _keep(
        self, number: int, value: Element, tables: tuple[tuple[_NodeUses, ...], ...]
    ) -> tuple[tuple[_NodeUses, ...], ...]:
        """Keep what has a value wherever this constraint asks for it."""
        return tuple(
            self._keep_of(part, dict(part.scopes[number]), value, table)
            for part, table in zip(self._parts, tables, strict=True)
        )

    def _keep_of(
        self,
        part: _PodsAlike,
        positions: Mapping[int, int],
        value: Element,
        table: tuple[_NodeUses, ...],
    ) -> tuple[_NodeUses, ...]:
        kept = list[_NodeUses]()
        for node in table:
            most, left = node.most, list[tuple[int, _GroupUses]]()
            for ask, groups in node.uses:
                if ask in positions:
                    self._look(len(groups))
                    place = positions[ask]
                    having = tuple(g for g in groups if value in g[1][place])
                    room = sum(use for use, _ in having)
                    most = min(most, room // part.member.asks[ask].count)
                    left.append((ask, having))
                else:
                    left.append((ask, groups))
            if most:
                kept.append(_NodeUses(node.nodes, most, tuple(left)))
        return tuple(kept)

    def _look(self, groups: int) -> None:
        self.left -= groups
        if self.left < 0:
            raise _LookedEnoughError


def _list_uses(shape: NodeShape, member: MemberKind, ask: int) -> _GroupUses:
    """List the groups of a node that may serve an ask."""
    asked = member.asks[ask]
    uses = ((bound_uses(group, asked), group.elements) for group in shape.groups)
    return tuple((use, elements) for use, elements in uses if use)
