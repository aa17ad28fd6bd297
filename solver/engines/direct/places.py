"""Where one gang's pods could go so that its topology holds, found by counting.

A small model needs few nodes that will do. For a gang whose rules are about labels of
nodes these are chosen group by group, the largest groups first: the tightest domain
that holds the group, then the tightest nodes in it. Nothing is taken back, so it may
find nothing where there is something; what it finds the model checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from msgspec import Struct

from contracts.even_parts import list_even_parts
from contracts.ids import NodeName
from solver.kinds.counting import bound_pods
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind
from solver.kinds.topology import PodsEven, PodsSpread, PodsTogether

Places = dict[int, frozenset[NodeName]]
"""Nodes by member kind."""
FINER = 3
"""Of even parts: divisions that are tried of those with enough domains by counting."""
_EPSILON = 1e-9
"""Parts of nodes are floating-point numbers."""


def choose_places(demand: Demand, kinds: tuple[NodeKind, ...]) -> Places | None:
    """Choose nodes for each cell of the only gang; None: none were found.

    Rules about attributes of devices are not looked at.
    """
    for finer in range(FINER):
        places = _Chooser(demand, kinds, finer).run()
        if places is not None or not demand.gang_rules[0].even:
            return places
    return None


class _Lot(Struct, eq=False):
    """Nodes of one kind that follow each other by name, and have as much left."""

    kind: int
    first: int
    """Place of the first among the nodes of the kind."""
    nodes: int
    left: float = 1.0
    """Part of each that no pod was given yet."""


class _Chooser:
    """One choice; `run` it once. Nodes are counted by kind until pods are given."""

    def __init__(self, demand: Demand, kinds: tuple[NodeKind, ...], finer: int) -> None:
        """`finer`: divisions into even parts that are passed over."""
        self._demand = demand
        self._finer = finer
        rules = demand.gang_rules[0]
        self._together = sorted(
            (r for r in rules.together if r.required and r.key.label is not None),
            key=lambda rule: -self._count(rule.kinds),
        )
        self._spread = [
            r for r in rules.spread if r.required and r.key.label is not None
        ]
        self._even = [r for r in rules.even if r.key.label is not None]
        self._parts: dict[int, tuple[int, frozenset[str | None]]] = {}
        """By even rule: the pods of each part, and the domains that have one."""
        self._kinds = kinds
        self._lots = [_Lot(k, 0, len(kind.nodes)) for k, kind in enumerate(kinds)]
        self._room_by_member: dict[object, list[int]] = {}
        self._chosen: dict[int, Hashable] = {
            number: next(iter(rule.standing))
            for number, rule in enumerate(self._together)
            if rule.standing
        }
        """Domain of each rule's group, by the rule's place."""
        self._crowd: Counter[tuple[int, str | None]] = Counter()
        """Pods by rule that spreads them, and domain."""
        self._filled: Counter[tuple[int, str | None]] = Counter()
        """Pods by even rule, and domain."""

    def run(self) -> Places | None:
        """Place cell after cell."""
        places: Places = {}
        for cell in (cell for cells in self._demand.cells_of[0] for cell in cells):
            lots = self._choose_domains(cell.kind)
            used = self._fill(cell.kind, lots, cell.pods)
            if used is None:
                return None
            places[cell.kind] = frozenset(
                self._kinds[lot.kind].nodes[lot.first].name for lot in used
            )
        return places

    def _count(self, kinds: Iterable[int]) -> int:
        return sum(self._demand.pods[kind] for kind in kinds)

    def _rooms(self, kind: int) -> list[int]:
        """Bound the pods of a kind on an empty node of each kind.

        Cells of a member are alike.
        """
        member = self._demand.member_kinds[kind]
        key = member.cell and member.cell[:2]
        if key not in self._room_by_member:
            self._room_by_member[key] = [
                bound_pods(member, node_kind.shape) for node_kind in self._kinds
            ]
        return self._room_by_member[key]

    def _choose_domains(self, kind: int) -> list[_Lot]:
        """Keep the nodes of the domains that the groups of a cell are in."""
        rooms = self._rooms(kind)
        lots = [lot for lot in self._lots if rooms[lot.kind]]
        own = [(i, rule) for i, rule in enumerate(self._together) if kind in rule.kinds]
        for position, (number, rule) in enumerate(own):
            if number not in self._chosen:
                inner = own[position + 1][1] if position + 1 < len(own) else None
                domain = self._find_tightest(kind, lots, rule, inner)
                if domain is None:
                    return []
                self._chosen[number] = domain
            chosen = self._chosen[number]
            lots = [lot for lot in lots if self._domain_of(lot, rule) == chosen]
        for number, even in enumerate(self._even):
            if kind in even.kinds:
                if number not in self._parts:
                    self._parts[number] = self._find_parts(kind, lots, even)
                _, domains = self._parts[number]
                lots = [lot for lot in lots if self._domain_of(lot, even) in domains]
        return lots

    def _find_parts(
        self, kind: int, lots: list[_Lot], rule: PodsEven
    ) -> tuple[int, frozenset[str | None]]:
        """Find the tightest domains for parts of a member: pods of each, domains."""
        rooms = Counter[str | None]()
        for lot in lots:
            rooms[self._domain_of(lot, rule)] += self._room_on(kind, lot) * lot.nodes
        rooms.pop(None, None)
        passed = self._finer
        for parts, size in list_even_parts(self._count(rule.kinds)):
            large = sorted((room, str(d)) for d, room in rooms.items() if room >= size)
            if len(large) >= parts:
                if not passed:
                    return size, frozenset(domain for _, domain in large[:parts])
                passed -= 1
        return 0, frozenset()

    def _domain_of(
        self, lot: _Lot, rule: PodsTogether | PodsSpread | PodsEven
    ) -> str | None:
        return self._kinds[lot.kind].shape.domains[rule.key.label or 0]

    def _find_tightest(
        self,
        kind: int,
        lots: list[_Lot],
        rule: PodsTogether,
        inner: PodsTogether | None,
    ) -> str | None:
        """Find the domain with the least room that holds a group, if any does.

        Room is counted in whole inner groups, as those must not be torn apart.
        """
        room_by_part = Counter[tuple[str, object]]()
        for lot in lots:
            domain = self._domain_of(lot, rule)
            if domain is not None:
                part = None if inner is None else self._domain_of(lot, inner)
                room_by_part[domain, part] += self._room_on(kind, lot) * lot.nodes
        size = 1 if inner is None else self._count(inner.kinds)
        room_by_domain = Counter[str]()
        for (domain, _), room in room_by_part.items():
            room_by_domain[domain] += room // size * size
        need = self._count(rule.kinds)
        fits = [(room, d) for d, room in room_by_domain.items() if room >= need]
        return min(fits)[1] if fits else None

    def _fill(self, kind: int, lots: list[_Lot], pods: int) -> list[_Lot] | None:
        """Give pods to nodes: the tightest that holds all the rest, or the largest."""
        rooms, free, used = self._rooms(kind), list(lots), list[_Lot]()
        while pods:
            ranked = [(self._limit(kind, lot), lot.kind, lot.first) for lot in free]
            ample = [entry for entry in ranked if entry[0] >= pods]
            # The largest, of equal ones the first by name.
            largest = max(((n, -k, -f) for n, k, f in ranked), default=(0, 0, 0))
            best = min(ample) if ample else (largest[0], -largest[1], -largest[2])
            if not best[0]:
                return None
            node = self._take_node(free, free[ranked.index(best)])
            count = min(best[0], pods)
            node.left -= count / rooms[node.kind]
            for number, rule in enumerate(self._spread):
                if kind in rule.kinds:
                    self._crowd[number, self._domain_of(node, rule)] += count
            for number, even in enumerate(self._even):
                if kind in even.kinds:
                    self._filled[number, self._domain_of(node, even)] += count
            used.append(node)
            pods -= count
        return used

    def _take_node(self, free: list[_Lot], lot: _Lot) -> _Lot:
        """Take the first node of a lot out of it, and out of those that are free."""
        if lot.nodes == 1:
            free.remove(lot)
            return lot
        node = _Lot(lot.kind, lot.first, 1, lot.left)
        lot.first, lot.nodes = lot.first + 1, lot.nodes - 1
        self._lots.append(node)
        return node

    def _room_on(self, kind: int, lot: _Lot) -> int:
        """Bound the pods of a kind that what is left of each node holds."""
        return int(lot.left * self._rooms(kind)[lot.kind] + _EPSILON)

    def _limit(self, kind: int, lot: _Lot) -> int:
        """Bound the pods on each node, also by how many its domains may still have."""
        room = self._room_on(kind, lot)
        for number, rule in enumerate(self._spread):
            if kind in rule.kinds:
                domain = self._domain_of(lot, rule)
                crowd = self._crowd[number, domain]
                room = 0 if domain is None else min(room, rule.room_in(domain) - crowd)
        for number, even in enumerate(self._even):
            if kind in even.kinds:
                size, _ = self._parts[number]
                filled = self._filled[number, self._domain_of(lot, even)]
                room = min(room, size - filled)
        return room
