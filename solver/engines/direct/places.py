"""Where one gang's pods could go so that its topology holds, found by counting.

A small model needs few nodes that will do. For a gang whose rules are about labels of
nodes these are chosen group by group, the largest groups first: the tightest domain
that holds the group, then the tightest nodes in it. Nothing is taken back, so it may
find nothing where there is something; what it finds the model checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from contracts.ids import NodeName
from solver.kinds.counting import bound_pods
from solver.kinds.demand import Demand
from solver.kinds.gang_rules import PodsSpread, PodsTogether
from solver.kinds.shapes import NodeKind

Places = dict[int, frozenset[NodeName]]
"""Nodes by member kind."""
_EPSILON = 1e-9
"""Parts of nodes are floating-point numbers."""


def choose_places(demand: Demand, kinds: tuple[NodeKind, ...]) -> Places | None:
    """Choose nodes for each cell of the only gang; None: none were found.

    Rules about attributes of devices are not looked at.
    """
    return _Chooser(demand, kinds).run()


class _Chooser:
    """One choice; `run` it once. A node is an index into all nodes."""

    def __init__(self, demand: Demand, kinds: tuple[NodeKind, ...]) -> None:
        self._demand = demand
        rules = demand.gang_rules[0]
        self._together = sorted(
            (r for r in rules.together if r.required and r.key.label is not None),
            key=lambda rule: -self._count(rule.kinds),
        )
        self._spread = [
            r for r in rules.spread if r.required and r.key.label is not None
        ]
        views = [(view, kind.shape) for kind in kinds for view in kind.nodes]
        self._names = [view.name for view, _ in views]
        self._domains = [shape.domains for _, shape in views]
        self._left = [1.0] * len(views)
        """Part of each node that no pod was given yet."""
        self._room_by_member: dict[object, list[int]] = {}
        self._kinds = kinds
        self._chosen: dict[int, str] = {}
        """Domain of each rule's group, by the rule's place."""
        self._crowd: Counter[tuple[int, str | None]] = Counter()
        """Pods by rule that spreads them, and domain."""

    def run(self) -> Places | None:
        """Place cell after cell."""
        places: Places = {}
        for cell in (cell for cells in self._demand.cells_of[0] for cell in cells):
            nodes = self._choose_domains(cell.kind)
            used = self._fill(cell.kind, nodes, cell.pods)
            if used is None:
                return None
            places[cell.kind] = frozenset(self._names[node] for node in used)
        return places

    def _count(self, kinds: Iterable[int]) -> int:
        return sum(self._demand.pods[kind] for kind in kinds)

    def _rooms(self, kind: int) -> list[int]:
        """Bound the pods of a kind on each empty node; cells of a member are alike."""
        member = self._demand.member_kinds[kind]
        key = member.cell and member.cell[:2]
        if key not in self._room_by_member:
            self._room_by_member[key] = [
                room
                for node_kind in self._kinds
                for room in [bound_pods(member, node_kind.shape)] * len(node_kind.nodes)
            ]
        return self._room_by_member[key]

    def _choose_domains(self, kind: int) -> list[int]:
        """Keep the nodes of the domains that the groups of a cell are in."""
        rooms = self._rooms(kind)
        nodes = [node for node, room in enumerate(rooms) if room]
        own = [(i, rule) for i, rule in enumerate(self._together) if kind in rule.kinds]
        for position, (number, rule) in enumerate(own):
            if number not in self._chosen:
                inner = own[position + 1][1] if position + 1 < len(own) else None
                domain = self._find_tightest(kind, nodes, rule, inner)
                if domain is None:
                    return []
                self._chosen[number] = domain
            nodes = [
                node
                for node in nodes
                if self._domain_of(node, rule) == self._chosen[number]
            ]
        return nodes

    def _domain_of(self, node: int, rule: PodsTogether | PodsSpread) -> str | None:
        return self._domains[node][rule.key.label or 0]

    def _find_tightest(
        self,
        kind: int,
        nodes: list[int],
        rule: PodsTogether,
        inner: PodsTogether | None,
    ) -> str | None:
        """Find the domain with the least room that holds a group, if any does.

        Room is counted in whole inner groups, as those must not be torn apart.
        """
        room_by_part = Counter[tuple[str, object]]()
        for node in nodes:
            domain = self._domain_of(node, rule)
            if domain is not None:
                part = None if inner is None else self._domain_of(node, inner)
                room_by_part[domain, part] += self._room_on(kind, node)
        size = 1 if inner is None else self._count(inner.kinds)
        room_by_domain = Counter[str]()
        for (domain, _), room in room_by_part.items():
            room_by_domain[domain] += room // size * size
        need = self._count(rule.kinds)
        fits = [(room, d) for d, room in room_by_domain.items() if room >= need]
        return min(fits)[1] if fits else None

    def _fill(self, kind: int, nodes: list[int], pods: int) -> list[int] | None:
        """Give pods to nodes: the tightest that holds all the rest, or the largest."""
        rooms, used = self._rooms(kind), list[int]()
        free = set(nodes)
        while pods:
            limits = {node: self._limit(kind, node) for node in free}
            ample = [(room, node) for node, room in limits.items() if room >= pods]
            if ample:
                room, node = min(ample)
            else:
                node = max(free, key=lambda n: (limits[n], -n), default=-1)
                room = limits.get(node, 0)
            if not room:
                return None
            count = min(room, pods)
            self._left[node] -= count / rooms[node]
            for number, rule in enumerate(self._spread):
                if kind in rule.kinds:
                    self._crowd[number, self._domain_of(node, rule)] += count
            used.append(node)
            free.discard(node)
            pods -= count
        return used

    def _room_on(self, kind: int, node: int) -> int:
        """Bound the pods of a kind that what is left of a node holds."""
        return int(self._left[node] * self._rooms(kind)[node] + _EPSILON)

    def _limit(self, kind: int, node: int) -> int:
        """Bound the pods on a node, also by how many its domains may still have."""
        room = self._room_on(kind, node)
        for number, rule in enumerate(self._spread):
            if kind in rule.kinds:
                domain = self._domain_of(node, rule)
                crowd = self._crowd[number, domain]
                room = 0 if domain is None else min(room, rule.most - crowd)
        return room
