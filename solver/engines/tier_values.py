"""What an answer is worth, tier by tier, as it is reported.

Computed from where the pods went, not from what a model said of itself.
"""

from __future__ import annotations

from collections import defaultdict

from msgspec import structs

from contracts.ids import DeviceID, NodeName
from solver.decision import TierValue
from solver.engines.goals import IN, LEFT, RANKS, Found, goals_of
from solver.kinds.demand import Demand, LocalAsk, MemberKind
from solver.kinds.nodes import GroupShape, NodeKind, NodeShape, NodeView
from solver.kinds.slack import value_of_shape
from solver.placement import Place, Placed


def reported(
    demand: Demand,
    hopeful: Demand,
    kinds: tuple[NodeKind, ...],
    found: Found,
    tiers: int,
) -> tuple[TierValue, ...]:
    """Report what was reached of each goal of the batch, and what was proven.

    `hopeful` and `kinds` are what the engine saw, and what `found` speaks of.
    """
    values = []
    for tier, priority in goals_of(demand, tiers):
        if tier == IN and priority is not None:
            value = _weight_in(hopeful, found.placed, priority)
        elif tier == RANKS:
            value = sum(sum(place.alternatives) for place in _places(found.placed))
        elif tier == LEFT:
            value = _value_lost(hopeful, kinds, found.placed)
        else:
            value = len({place.node for place in _places(found.placed)})
        # Nothing is lost where nothing is placed: that needs no proof.
        default = value if tier <= RANKS or not value else None
        bound = found.bounds.get((tier, priority), default)
        values.append(TierValue(tier=tier, priority=priority, value=value, bound=bound))
    return tuple(values)


def _weight_in(demand: Demand, placed: tuple[Placed, ...], priority: int) -> int:
    gangs = [demand.gangs[item.gang] for item in placed]
    return sum(gang.weight for gang in gangs if gang.priority == priority)


def _places(placed: tuple[Placed, ...]) -> list[Place]:
    return [place for item in placed for places in item.members for place in places]


def _value_lost(
    demand: Demand, kinds: tuple[NodeKind, ...], placed: tuple[Placed, ...]
) -> int:
    """Add up what room on the touched nodes was worth before, and is not any more."""
    by_node: dict[NodeName, list[tuple[MemberKind, Place]]] = defaultdict(list)
    for item in placed:
        members = demand.member_kinds_of[item.gang]
        for kind, places in zip(members, item.members, strict=True):
            for place in places:
                by_node[place.node].append((demand.member_kinds[kind], place))
    views = (view for kind in kinds for view in kind.nodes if view.name in by_node)
    return sum(
        value_of_shape(demand.expected, view.shape)
        - value_of_shape(demand.expected, _left_of(view, by_node[view.name]))
        for view in views
    )


def _left_of(view: NodeView, pods: list[tuple[MemberKind, Place]]) -> NodeShape:
    """Say what a node's shape is without what these pods take of it."""
    shape, uses = view.shape, dict[DeviceID, list[LocalAsk]]()
    for member, place in pods:
        for request, devices in enumerate(place.devices):
            asks = member.alternatives(request)
            ask = member.asks[asks[place.alternatives[request]]]
            for device in () if ask.admin else devices:
                uses.setdefault(device, []).append(ask)
    groups = tuple(
        _group_left(group, [uses[name] for name in named.devices if name in uses])
        for group, named in zip(shape.groups, view.groups, strict=True)
    )
    free = tuple(
        None if left is None else left - sum(member.needs[r] for member, _ in pods)
        for r, left in enumerate(shape.free)
    )
    return structs.replace(shape, groups=groups, free=free)


def _group_left(group: GroupShape, uses: list[list[LocalAsk]]) -> GroupShape:
    """Take the used devices away; `uses[device]` are those of one device."""
    left = group.traits.left
    if left is None:
        return structs.replace(group, size=group.size - len(uses))
    for ask in (ask for asks in uses for ask in asks):
        costs = group.traits.costs[ask.kind] or (0,) * len(left)
        left = tuple(a - b for a, b in zip(left, costs, strict=True))
    return structs.replace(group, traits=structs.replace(group.traits, left=left))
