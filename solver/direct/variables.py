"""The variables of the direct model, behind the questions that rules ask.

A lot is "pods of one kind on one node": how many, and how many devices of each group
serve each of their requests. One lot holds many pods as long as any split of its
devices among them is as good as another; where it is not (a pod's devices must differ
in something, or one request stands in two constraints) each pod gets a lot of its own.

Why splitting is safe: with each request in at most one matchAttribute, the pods that
chose a value share the groups of that value, and any of them may take any device.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ortools.sat.python import cp_model

from solver.problem.capacity import pods_at_most
from solver.problem.demand import Demand, GangKind, LocalConstraint, MemberKind
from solver.problem.nodes import NodeView

Term = tuple[cp_model.IntVar, int]
"""A variable and its coefficient."""


class Lot:
    """Pods of one kind on one node; `single`: at most one pod."""

    def __init__(
        self, kind: int, node: int, pods: cp_model.IntVar, most: int, *, single: bool
    ) -> None:
        self.kind = kind
        self.node = node
        self.pods = pods
        self.most = most
        self.single = single
        self.uses: dict[tuple[int, int], Term] = {}
        """(request, group) -> devices of the group that serve the request."""
        self.chosen: dict[tuple[int, int], cp_model.IntVar] = {}
        """(constraint, value) -> pods whose devices share this value."""

    def serving(self, request: int) -> list[tuple[int, Term]]:
        """List the groups that may serve a request, with the devices they give."""
        return [(g, term) for (r, g), term in self.uses.items() if r == request]


class Placements:
    """All variables of one direct model."""

    def __init__(
        self, model: cp_model.CpModel, demand: Demand, nodes: tuple[NodeView, ...]
    ) -> None:
        self.model = model
        self.demand = demand
        self.nodes = nodes
        self.lots: list[Lot] = []
        self.lots_of: list[list[Lot]] = [[] for _ in demand.member_kinds]
        self.gangs: dict[GangKind, cp_model.IntVar] = {}
        for number, (kind, members) in enumerate(demand.gang_kinds.items()):
            self.gangs[kind] = model.new_int_var(0, len(members), f"in[{number}]")
        for node, view in enumerate(nodes):
            for number, member in enumerate(demand.member_kinds):
                self._add_lots(node, view, number, member)

    def _add_lots(
        self, node: int, view: NodeView, number: int, member: MemberKind
    ) -> None:
        most = min(pods_at_most(member, view.shape), self.demand.pods[number])
        if most == 0:
            return
        sizes = [most] if is_divisible(member) else [1] * most
        for slot, size in enumerate(sizes):
            name = f"pods[{number},{node},{slot}]"
            pods = self.model.new_int_var(0, size, name)
            lot = Lot(number, node, pods, size, single=not is_divisible(member))
            self._add_uses(lot, view, member)
            self.lots.append(lot)
            self.lots_of[number].append(lot)

    def _add_uses(self, lot: Lot, view: NodeView, member: MemberKind) -> None:
        for r, request in enumerate(member.requests):
            groups = list(groups_for(member, r, view))
            for g in groups:
                size = view.shape.groups[g].size
                if request.all_devices:
                    lot.uses[r, g] = (lot.pods, size)
                elif len(groups) == 1:
                    lot.uses[r, g] = (lot.pods, request.count)
                elif request.count:
                    most = min(size, request.count * lot.most)
                    name = f"devices[{lot.kind},{lot.node},{r},{g}]"
                    lot.uses[r, g] = (self.model.new_int_var(0, most, name), 1)
        for c, constraint in enumerate(member.constraints):
            if constraint.distinct or not constraint.requests:
                continue
            for value in values_of(lot, view, constraint):
                name = f"chosen[{lot.kind},{lot.node},{c},{value}]"
                lot.chosen[c, value] = self.model.new_int_var(0, lot.most, name)

    def member_of(self, lot: Lot) -> MemberKind:
        """Say what the pods of a lot need."""
        return self.demand.member_kinds[lot.kind]

    def on_node(self, node: int) -> Iterator[Lot]:
        """Go through the lots of a node."""
        return (lot for lot in self.lots if lot.node == node)


@lru_cache(maxsize=4096)
def is_divisible(member: MemberKind) -> bool:
    """Say whether any split of a lot's devices among its pods is valid."""
    constrained: set[int] = set()
    for constraint in member.constraints:
        if constraint.distinct or constrained & set(constraint.requests):
            return False
        constrained |= set(constraint.requests)
    return True


def groups_for(member: MemberKind, request: int, view: NodeView) -> Iterator[int]:
    """Go through the groups that may serve a request, given its constraints.

    A group that lacks a compared attribute serves no request in that scope.
    """
    mask = 1 << member.requests[request].kind
    compared = [
        constraint.attribute
        for constraint in member.constraints
        if request in constraint.requests
    ]
    for index, group in enumerate(view.shape.groups):
        if group.mask & mask and all(group.values[a] for a in compared):
            yield index


def values_of(lot: Lot, view: NodeView, constraint: LocalConstraint) -> list[int]:
    """List the values that some device of a request in scope has."""
    return sorted(
        {
            view.shape.groups[g].values[constraint.attribute]
            for r, g in lot.uses
            if r in constraint.requests
        }
    )
