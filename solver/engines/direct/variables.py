"""The variables of the direct model, behind the questions that rules ask.

A lot is "pods of one kind on one node": how many, how many of them take which
alternative, and how many devices of each group serve each (sub)request. One lot holds
many pods as long as any split of its devices among them is as good as another; where it
is not (a pod's devices must differ in something, or one request stands in two
constraints) each pod gets a lot of its own.

Why splitting is safe: with each request in at most one matchAttribute, and no choice of
alternatives inside one, the pods that chose a value share the groups of that value, and
any of them may take any device.
"""

from __future__ import annotations

from collections.abc import Iterator

from ortools.sat.python import cp_model

from contracts.allocation import MAX_DEVICES
from solver.cache import cached
from solver.engines.cpsat import Term
from solver.kinds.counting import pods_at_most, uses_at_most
from solver.kinds.demand import Demand, GangKind, LocalConstraint, MemberKind
from solver.kinds.nodes import NodeShape, NodeView


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
        self.picks: dict[int, cp_model.IntVar] = {}
        """Ask -> pods that take this alternative; impossible ones are left out."""
        self.uses: dict[tuple[int, int], Term] = {}
        """(ask, group) -> devices of the group that serve it."""
        self.chosen: dict[tuple[int, int], cp_model.IntVar] = {}
        """(constraint, value) -> pods whose devices share this value."""

    def serving(self, ask: int) -> list[tuple[int, Term]]:
        """List the groups that may serve an ask, with the devices they give."""
        return [(g, term) for (a, g), term in self.uses.items() if a == ask]


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
        divisible = is_divisible(member, view.shape)
        for slot, size in enumerate([most] if divisible else [1] * most):
            name = f"{number},{node},{slot}"
            pods = self.model.new_int_var(0, size, f"pods[{name}]")
            lot = Lot(number, node, pods, size, single=not divisible)
            for request in range(member.requests):
                self._add_request(lot, view, member, request, name)
            self._add_choices(lot, view, member, name)
            self.lots.append(lot)
            self.lots_of[number].append(lot)

    def _add_request(
        self, lot: Lot, view: NodeView, member: MemberKind, request: int, name: str
    ) -> None:
        asks = [a for a in member.alternatives(request) if _possible(member, a, view)]
        for a in asks:
            pick = lot.pods
            if len(member.alternatives(request)) > 1:
                pick = self.model.new_int_var(0, lot.most, f"picks[{name},{a}]")
            lot.picks[a] = pick
            self._add_uses(lot, view, member, a, name)

    def _add_uses(
        self, lot: Lot, view: NodeView, member: MemberKind, a: int, name: str
    ) -> None:
        ask, pick = member.asks[a], lot.picks[a]
        groups = list(groups_for(member, a, view.shape))
        for g in groups:
            shape = view.shape.groups[g]
            if ask.all_devices:
                lot.uses[a, g] = (pick, shape.size)
            elif len(groups) == 1 and not shape.is_shareable:
                lot.uses[a, g] = (pick, ask.count)
            elif ask.count:
                each = 1 if shape.is_shareable else min(shape.size, ask.count)
                most = min(uses_at_most(shape, ask), each * lot.most)
                variable = self.model.new_int_var(0, most, f"uses[{name},{a},{g}]")
                lot.uses[a, g] = (variable, 1)

    def _add_choices(
        self, lot: Lot, view: NodeView, member: MemberKind, name: str
    ) -> None:
        for c, constraint in enumerate(member.constraints):
            if constraint.distinct:
                continue
            for value in values_of(lot, view, constraint):
                text = f"chosen[{name},{c},{value}]"
                lot.chosen[c, value] = self.model.new_int_var(0, lot.most, text)

    def member_of(self, lot: Lot) -> MemberKind:
        """Say what the pods of a lot need."""
        return self.demand.member_kinds[lot.kind]

    def shape_of(self, lot: Lot) -> NodeShape:
        """Say what the lot's node is like."""
        return self.nodes[lot.node].shape


def _possible(member: MemberKind, a: int, view: NodeView) -> bool:
    """Say whether a node may serve an alternative at all."""
    ask, shape = member.asks[a], view.shape
    if not ask.all_devices:
        return True
    meant = [g for g, group in enumerate(shape.groups) if group.mask >> ask.kind & 1]
    devices = sum(shape.groups[g].size for g in meant)
    return (
        bool(shape.all_free >> ask.kind & 1)
        and devices <= MAX_DEVICES
        and meant == list(groups_for(member, a, shape))
    )


@cached(bound=16384)
def is_divisible(member: MemberKind, shape: NodeShape) -> bool:
    """Say whether any split of a lot's devices among its pods is valid."""
    if any(ask.admin for ask in member.asks) or may_exceed(member, shape):
        return False
    constrained: set[int] = set()
    for constraint in member.constraints:
        asks = {a for a, _ in constraint.scope}
        requests = {member.asks[a].request for a in asks}
        if constraint.distinct or constrained & requests:
            return False
        if any(len(member.alternatives(request)) > 1 for request in requests):
            return False
        constrained |= requests
        for group in shape.groups:
            serves = any(group.mask >> member.asks[a].kind & 1 for a in asks)
            several = any(
                len(group.values[column]) > 1 for _, column in constraint.scope
            )
            if serves and (group.is_shareable or several):
                return False
    return True


def may_exceed(member: MemberKind, shape: NodeShape) -> bool:
    """Say whether some choice of alternatives breaks the limit of a claim."""
    most = [0] * len(member.claims)
    for request in range(member.requests):
        asks = [member.asks[a] for a in member.alternatives(request)]
        most[asks[0].claim] += max(
            sum(g.size for g in shape.groups if g.mask >> ask.kind & 1)
            if ask.all_devices
            else ask.count
            for ask in asks
        )
    return any(total > MAX_DEVICES for total in most)


def groups_for(member: MemberKind, a: int, shape: NodeShape) -> Iterator[int]:
    """Go through the groups that may serve an ask, given its constraints.

    A group that lacks a compared attribute serves nothing in that scope.
    """
    mask = 1 << member.asks[a].kind
    compared = [
        column
        for constraint in member.constraints
        for ask, column in constraint.scope
        if ask == a
    ]
    for index, group in enumerate(shape.groups):
        if group.mask & mask and all(group.values[column] for column in compared):
            yield index


def values_of(lot: Lot, view: NodeView, constraint: LocalConstraint) -> list[int]:
    """List the values that some device in the scope of a constraint has."""
    columns = dict(constraint.scope)
    return sorted(
        {
            value
            for a, g in lot.uses
            if a in columns
            for value in view.shape.groups[g].values[columns[a]]
        }
    )
