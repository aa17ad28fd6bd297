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

from contracts.allocation import MAX_DEVICES
from solver.cache import cached
from solver.engines import cp_model
from solver.engines.cpsat import Term
from solver.engines.direct.places import Places
from solver.kinds.counting import bound_pods, bound_uses
from solver.kinds.demand import Demand, GangKind, LocalConstraint, MemberKind
from solver.kinds.shapes import NodeShape, NodeView
from solver.problem.attributes import Element


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
        """Ask -> pods that take this alternative; impossible ones are left out. Where
        the request has no other alternative it is `pods` itself."""
        self.uses: dict[tuple[int, int], Term] = {}
        """(ask, group) -> devices of the group that serve it."""
        self.value_picks: dict[tuple[int, int], cp_model.IntVar] = {}
        """(constraint, value) -> pods whose devices share this value."""
        self.domains: dict[int, dict[Element | None, cp_model.IntVar]] = {}
        """Column -> value -> 1 where the one pod is in this domain; None: in none."""

    def serving(self, ask: int) -> list[tuple[int, Term]]:
        """List the groups that may serve an ask, with the devices they give."""
        return [(group, term) for (a, group), term in self.uses.items() if a == ask]


class Placements:
    """All variables of one direct model.

    An `ask` is an index into `MemberKind.asks`, a `group` one into `NodeShape.groups`,
    a `node` one into `nodes`.
    """

    def __init__(
        self,
        model: cp_model.CpModel,
        demand: Demand,
        nodes: tuple[NodeView, ...],
        places: Places | None = None,
    ) -> None:
        self.model = model
        self.demand = demand
        self.nodes = nodes
        self.lots: list[Lot] = []
        self.lots_of: list[list[Lot]] = [[] for _ in demand.member_kinds]
        self.gangs: dict[GangKind, cp_model.IntVar] = {}
        self.extra: dict[tuple[GangKind, int], cp_model.IntVar] = {}
        """Pods of a member kind beyond the least, over the gangs of a kind."""
        self.parts: list[Term] = []
        """Parts beyond the first of members that are divided evenly."""
        for number, (kind, members) in enumerate(demand.gang_kinds.items()):
            self.gangs[kind] = model.new_int_var(0, len(members), f"in[{number}]")
            for of_kind, pods in kind.extra:
                name = f"extra[{number},{of_kind}]"
                extra = model.new_int_var(0, len(members) * pods, name)
                self.extra[kind, of_kind] = extra
        for node, view in enumerate(nodes):
            for kind_number, member in enumerate(demand.member_kinds):
                if places is None or view.name in places[kind_number]:
                    self._add_lots(node, view, kind_number, member)

    def _add_lots(
        self, node: int, view: NodeView, kind: int, member: MemberKind
    ) -> None:
        most = min(bound_pods(member, view.shape), self.demand.pods[kind])
        if most == 0:
            return
        divisible = is_divisible(member, view.shape)
        for slot, size in enumerate([most] if divisible else [1] * most):
            name = f"{kind},{node},{slot}"
            pods = self.model.new_int_var(0, size, f"pods[{name}]")
            lot = Lot(kind, node, pods, size, single=not divisible)
            for request in range(member.requests):
                self._add_request(lot, view, member, request, name)
            self._add_value_picks(lot, view, member, name)
            self.lots.append(lot)
            self.lots_of[kind].append(lot)

    def _add_request(
        self, lot: Lot, view: NodeView, member: MemberKind, request: int, name: str
    ) -> None:
        asks = member.alternatives(request)
        for ask in (ask for ask in asks if _is_possible(member, ask, view)):
            pick = lot.pods
            if len(asks) > 1:
                pick = self.model.new_int_var(0, lot.most, f"picks[{name},{ask}]")
            lot.picks[ask] = pick
            self._add_uses(lot, view, member, ask, name)

    def _add_uses(
        self, lot: Lot, view: NodeView, member: MemberKind, ask: int, name: str
    ) -> None:
        alternative, pick = member.asks[ask], lot.picks[ask]
        groups = list(groups_for(member, ask, view.shape))
        for group in groups:
            group_shape = view.shape.groups[group]
            # Where pods have no choice, how many of them there are says all.
            if alternative.all_devices:
                lot.uses[ask, group] = (pick, group_shape.size)
            elif len(groups) == 1 and not group_shape.is_shareable:
                lot.uses[ask, group] = (pick, alternative.count)
            elif alternative.count:
                per_pod = min(group_shape.size, alternative.count)
                if group_shape.is_shareable:
                    per_pod = 1
                most = min(bound_uses(group_shape, alternative), per_pod * lot.most)
                text = f"uses[{name},{ask},{group}]"
                lot.uses[ask, group] = (self.model.new_int_var(0, most, text), 1)

    def _add_value_picks(
        self, lot: Lot, view: NodeView, member: MemberKind, name: str
    ) -> None:
        for number, constraint in enumerate(member.constraints):
            if constraint.distinct:
                continue
            for value in values_of(lot, view, constraint):
                text = f"value_picks[{name},{number},{value}]"
                pick = self.model.new_int_var(0, lot.most, text)
                lot.value_picks[number, value] = pick

    def member_of(self, lot: Lot) -> MemberKind:
        """Look up what the pods of a lot need."""
        return self.demand.member_kinds[lot.kind]

    def elements_of(self, lot: Lot, group: int, column: int) -> tuple[Element, ...]:
        """Look up the values of a group that are compared between nodes."""
        position = self.demand.query.named.index(column)
        return self.shape_of(lot).groups[group].elements[position]

    def shape_of(self, lot: Lot) -> NodeShape:
        """Look up what the lot's node is like."""
        return self.nodes[lot.node].shape


def _is_possible(member: MemberKind, ask: int, view: NodeView) -> bool:
    """True if a node may serve an alternative at all."""
    alternative, shape = member.asks[ask], view.shape
    if not alternative.all_devices:
        return True
    # `All` means every device of the kind: each must be free and meet the constraints.
    kind = alternative.kind
    meant = [
        index for index, group in enumerate(shape.groups) if group.mask >> kind & 1
    ]
    devices = sum(shape.groups[index].size for index in meant)
    return (
        bool(shape.all_free >> kind & 1)
        and devices <= MAX_DEVICES
        and meant == list(groups_for(member, ask, shape))
    )


@cached(bound=16384)
def is_divisible(member: MemberKind, shape: NodeShape) -> bool:
    """True if any split of a lot's devices among its pods is valid."""
    if member.is_single or any(alternative.admin for alternative in member.asks):
        return False
    if may_exceed(member, shape):
        return False
    constrained: set[int] = set()
    for constraint in member.constraints:
        asks = {ask for ask, _ in constraint.scope}
        requests = {member.asks[ask].request for ask in asks}
        # A request in two constraints, or devices of one pod that must differ.
        if constraint.distinct or constrained & requests:
            return False
        # A choice inside the constraint.
        if any(len(member.alternatives(request)) > 1 for request in requests):
            return False
        constrained |= requests
        # Devices that stand for several values, or that several pods have.
        for group in shape.groups:
            serves = any(group.mask >> member.asks[ask].kind & 1 for ask in asks)
            several = any(
                len(group.values[column]) > 1 for _, column in constraint.scope
            )
            if serves and (group.is_shareable or several):
                return False
    return True


def may_exceed(member: MemberKind, shape: NodeShape) -> bool:
    """True if some choice of alternatives breaks the limit of a claim."""
    most = [0] * len(member.claims)
    for request in range(member.requests):
        alternatives = [member.asks[ask] for ask in member.alternatives(request)]
        most[alternatives[0].claim] += max(
            sum(group.size for group in shape.groups if group.mask >> each.kind & 1)
            if each.all_devices
            else each.count
            for each in alternatives
        )
    return any(devices > MAX_DEVICES for devices in most)


def groups_for(member: MemberKind, ask: int, shape: NodeShape) -> Iterator[int]:
    """Go through the groups that may serve an ask, given its constraints.

    A group that lacks a compared attribute serves nothing in that scope.
    """
    mask = 1 << member.asks[ask].kind
    compared = [
        column
        for constraint in member.constraints
        for constrained, column in constraint.scope
        if constrained == ask
    ]
    compared += [
        column for constrained, column in member.compared if constrained == ask
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
            for ask, group in lot.uses
            if ask in columns
            for value in view.shape.groups[group].values[columns[ask]]
        }
    )
