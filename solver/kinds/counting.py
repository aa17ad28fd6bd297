"""How many pods of one kind a node can take at most, by counting alone.

An upper bound that needs no search: no model may exceed it, and where even the bound
says no, no model is needed. Exact for pods with one request; it may promise too much
where requests compete or several constraints meet, never too little.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor

from solver.cache import cached
from solver.kinds.demand import Demand, LocalConstraint, MemberKind, RequestAlternative
from solver.kinds.shapes import GroupShape, NodeKind, NodeShape

PLENTY = 1 << 24
"""More pods than any batch has: counting sets no bound."""


@cached(bound=65536)
def bound_pods(kind: MemberKind, shape: NodeShape) -> int:
    """Bound the pods of this kind on a node of this shape from above."""
    if not shape.fits >> kind.fit & 1:
        return 0
    bounds = [PLENTY, *_bound_by_resources(kind, shape)]
    for request in range(kind.requests):
        asks = [kind.asks[i] for i in kind.alternatives(request)]
        bounds.append(sum(_bound_by_ask(ask, shape) for ask in asks))
    bounds.extend(_bound_by_kinds(_sole_asks(kind), shape))
    for constraint in kind.constraints:
        if min(bounds) == 0:
            return 0
        bounds.append(_bound_by_constraint(kind, constraint, shape))
    return min(bounds)


def is_counted(member: MemberKind, ask: int) -> bool:
    """True if each pod gets that many devices for an ask, whatever is chosen."""
    alternatives = member.alternatives(member.asks[ask].request)
    return len(alternatives) == 1 and bool(member.asks[ask].count)


def has_room(demand: Demand, kinds: Iterable[NodeKind]) -> bool:
    """True if all nodes together could hold each kind of pod of a batch by itself."""
    counted = tuple(kinds)
    return all(
        pods
        <= sum(bound_pods(member, kind.shape) * len(kind.nodes) for kind in counted)
        for member, pods in zip(demand.member_kinds, demand.pods, strict=True)
    )


def is_one_to_a_node(demand: Demand, kinds: Iterable[NodeKind]) -> bool:
    """True if all pods of a batch are alike, and no node takes two of them."""
    if len(demand.member_kinds) != 1:
        return False
    (member,) = demand.member_kinds
    is_single = sum(demand.pods) == 1
    return is_single or all(bound_pods(member, kind.shape) <= 1 for kind in kinds)


def bound_weight(demand: Demand, kinds: Iterable[NodeKind], priority: int) -> int:
    """Bound the weight of the gangs of a priority that are in, by devices alone.

    The most valuable ones per device are in, until all devices of all nodes are used.
    Only requests without alternatives count; extra pods bring no weight. Tighter and
    dearer is `solver/engines/relaxation.py`.
    """
    sole = [_sole_asks(member) for member in demand.member_kinds]
    asked_of = [sum(ask.count for ask in asks) for asks in sole]
    requests = {ask.kind for asks in sole for ask in asks}
    left = sum(
        len(kind.nodes)
        * sum(bound_uses_together(group, requests) for group in kind.shape.groups)
        for kind in kinds
    )
    total = 0
    shares = []
    for kind, gangs in demand.gang_kinds.items():
        if kind.priority != priority:
            continue
        asked = sum(asked_of[member] * pods for member, pods in kind.members)
        if asked:
            shares.append((Fraction(kind.weight, asked), asked * len(gangs)))
        else:
            total += kind.weight * len(gangs)
    worth = Fraction(0)
    for share, asked in sorted(shares, reverse=True):
        taken = min(asked, left)
        worth += share * taken
        left -= taken
    return total + floor(worth)


def _sole_asks(member: MemberKind) -> list[RequestAlternative]:
    """List the requests that take a fixed number of devices: those without a choice."""
    by_request = [member.alternatives(request) for request in range(member.requests)]
    sole = [member.asks[asks[0]] for asks in by_request if len(asks) == 1]
    return [ask for ask in sole if not ask.all_devices and not ask.admin]


def _bound_by_resources(kind: MemberKind, shape: NodeShape) -> list[int]:
    """Bound the pods by what each needs of the node's own resources."""
    pairs = zip(kind.needs, shape.free, strict=True)
    return [free // need for need, free in pairs if need and free is not None]


def bound_uses(group: GroupShape, ask: RequestAlternative) -> int:
    """Bound the uses of a group's devices for one (sub)request."""
    if ask.admin and group.mask >> ask.kind & 1:
        return PLENTY
    return bound_uses_together(group, (ask.kind,))


def bound_uses_together(group: GroupShape, kinds: Iterable[int]) -> int:
    """Bound the uses of a group's devices for kinds of request, of all together.

    Of each capacity a share takes what the kind takes that takes least of it: two
    kinds may fit beside each other where no two shares of either do.
    """
    serving = [kind for kind in kinds if group.mask >> kind & 1]
    if not serving or group.traits.left is None:
        return group.size if serving else 0
    costs = [group.traits.costs[kind] for kind in serving]
    least: Iterable[int] = map(min, zip(*costs, strict=False))
    pairs = zip(group.traits.left, least, strict=False)
    return min((PLENTY, *(left // cost for left, cost in pairs if cost)))


def sum_uses(groups: tuple[GroupShape, ...], ask: RequestAlternative) -> int:
    """Bound the uses of all groups of a node for one (sub)request."""
    if ask.admin:
        return sum(bound_uses(group, ask) for group in groups)
    return _sum_uses_together(groups, (ask.kind,))


@cached(bound=65536)
def _sum_uses_together(groups: tuple[GroupShape, ...], kinds: tuple[int, ...]) -> int:
    return sum([bound_uses_together(group, kinds) for group in groups])


@cached(bound=65536)
def _sum_uses_by_value(
    groups: tuple[GroupShape, ...], kind: int, column: int, admin: bool
) -> dict[int, int]:
    """Bound the uses for a request kind of the groups that have each value."""
    totals: dict[int, int] = {}
    for group in groups:
        if group.mask >> kind & 1 and group.values[column]:
            uses = PLENTY if admin else bound_uses_together(group, (kind,))
            for value in dict.fromkeys(group.values[column]):
                totals[value] = totals.get(value, 0) + uses
    return totals


def _bound_by_ask(ask: RequestAlternative, shape: NodeShape) -> int:
    if not ask.all_devices:
        if not ask.count:
            return PLENTY
        return min(sum_uses(shape.groups, ask) // ask.count, PLENTY)
    if not shape.all_free >> ask.kind & 1:
        return 0
    uses_by_group = [bound_uses(group, ask) for group in shape.groups]
    return min(
        PLENTY if ask.admin or group.is_shareable else 1
        for group, use in zip(shape.groups, uses_by_group, strict=True)
        if use
    )


def _bound_by_kinds(asks: list[RequestAlternative], shape: NodeShape) -> list[int]:
    """Bound by what requests of one kind, and all together, need."""
    needs: dict[int, int] = {}
    for ask in asks:
        needs[ask.kind] = needs.get(ask.kind, 0) + ask.count
    bounds = [
        _sum_uses_together(shape.groups, (kind,)) // count
        for kind, count in needs.items()
        if count
    ]
    total = sum(needs.values())
    if total:
        bounds.append(_sum_uses_together(shape.groups, tuple(needs)) // total)
    return bounds


def _bound_by_constraint(
    kind: MemberKind, constraint: LocalConstraint, shape: NodeShape
) -> int:
    """Bound the pods by one constraint: over the values of its attribute."""
    scope = [(kind.asks[i], column) for i, column in constraint.scope]
    sole = [
        (ask, column)
        for ask, column in scope
        if len(kind.alternatives(ask.request)) == 1
    ]
    for ask, column in sole:
        if ask.all_devices and not _can_all_share(ask, column, constraint, shape):
            return 0
    counted = [
        (ask, column)
        for ask, column in sole
        if ask.count and not ask.admin and not ask.all_devices
    ]
    if constraint.distinct:
        return _bound_by_distinct(counted, shape)
    if not counted:
        return PLENTY
    return bound_pods_by_values(counted, shape.groups)


def bound_pods_by_values(
    counted: Sequence[tuple[RequestAlternative, int]], groups: tuple[GroupShape, ...]
) -> int:
    """Bound the pods of which each has devices of one value for all these requests.

    `counted` are requests for a number of devices, each with its column.
    """
    first, *others = [
        (_sum_uses_by_value(groups, ask.kind, column, ask.admin), ask.count)
        for ask, column in counted
    ]
    totals, count = first
    return sum(
        min(uses // count, *(other.get(value, 0) // least for other, least in others))
        if others
        else uses // count
        for value, uses in totals.items()
    )


def _can_all_share(
    ask: RequestAlternative, column: int, constraint: LocalConstraint, shape: NodeShape
) -> bool:
    """True if all devices of a request may meet a constraint at once."""
    meant = [group for group in shape.groups if group.mask >> ask.kind & 1]
    lists = [group.values[column] for group in meant for _ in range(group.size)]
    if not all(lists):
        return False
    if constraint.distinct:
        return sum(map(len, lists)) == len(set().union(*lists))
    return bool(set(lists[0]).intersection(*lists)) if lists else True


def _bound_by_distinct(
    counted: list[tuple[RequestAlternative, int]], shape: NodeShape
) -> int:
    """One device a value: enough values must offer some device to each request."""
    total = sum(ask.count for ask, _ in counted)
    if not total:
        return PLENTY
    values = {
        value
        for ask, column in counted
        for group in shape.groups
        if bound_uses(group, ask)
        for value in group.values[column]
    }
    return 0 if len(values) < total else PLENTY
