"""What an engine's answer is worth, tier by tier, as the Decision reports it.

Computed from where the pods went, not from what a model said of itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice

from msgspec import structs

from contracts.ids import DeviceID, NodeName
from solver.decision import Status, TierValue
from solver.engines.goals import Effort, EngineResult, Goal, goals_of
from solver.engines.topology_cost import count_preference_cost
from solver.kinds.demand import Demand, MemberKind, RequestAlternative
from solver.kinds.shapes import (
    CounterShape,
    GroupShape,
    Identity,
    NodeKind,
    NodeShape,
    NodeView,
)
from solver.kinds.slack import value_of_shape
from solver.kinds.traits import Traits
from solver.placement import GangPlacement, PodPlacement
from solver.tiers import Tier


def tier_values_of(
    demand: Demand,
    hopeful: Demand,
    kinds: tuple[NodeKind, ...],
    result: EngineResult,
    last: Tier,
) -> tuple[TierValue, ...]:
    """Compute what was reached of each goal of the batch, and what was proven.

    `hopeful` and `kinds` are what the engine saw, and what `result` speaks of.
    """
    values = []
    pods = _pods_of(result.placements)
    for tier, priority in goals_of(demand, last):
        if tier is Tier.GANGS and priority is not None:
            value = weight_in(hopeful, result.placements, priority)
        elif tier is Tier.EXTRA and priority is not None:
            value = extra_in(hopeful, result.placements, priority)
        elif tier is Tier.ALTERNATIVES:
            value = sum(sum(pod.alternatives) for pod in pods)
        elif tier is Tier.LEFTOVER:
            value = _value_lost(hopeful, kinds, result.placements)
        elif tier is Tier.TOPOLOGY:
            value = count_preference_cost(hopeful, kinds, result.placements)
        else:
            value = len({pod.node for pod in pods})
        # Nothing is lost where nothing is placed: that needs no proof.
        default = value if tier.place <= Tier.ALTERNATIVES.place or not value else None
        bound = result.bounds.get((tier, priority), default)
        # Nor does it that no preference is missed, even if the engine proved none.
        if bound is None and not value and tier is Tier.TOPOLOGY:
            bound = 0
        values.append(TierValue(tier=tier, priority=priority, value=value, bound=bound))
    return tuple(values)


def weight_in(
    demand: Demand, placements: Iterable[GangPlacement], priority: int
) -> int:
    """Add up the weight of the gangs of a priority that are in."""
    gangs = [demand.gangs[placement.gang] for placement in placements]
    return sum(gang.weight for gang in gangs if gang.priority == priority)


def extra_in(demand: Demand, placements: Iterable[GangPlacement], priority: int) -> int:
    """Add up what pods of a priority are worth without which their gangs were in."""
    extra = 0
    for placement in placements:
        gang = demand.gangs[placement.gang]
        if gang.priority == priority and gang.is_elastic:
            for cells, member, pods in zip(
                demand.cells_of[placement.gang],
                gang.members,
                placement.members,
                strict=True,
            ):
                worth = demand.member_kinds[cells[0].kind].worth
                extra += (len(pods) - member.least) * worth
    return extra


def better_of(demand: Demand, one: EngineResult, other: EngineResult) -> EngineResult:
    """Return the answer of more weight, with the lower bound of the first priority."""
    priorities = sorted({gang.priority for gang in demand.gangs}, reverse=True)
    goal: Goal = (Tier.GANGS, priorities[0])
    weights = [
        [weight_in(demand, result.placements, priority) for priority in priorities]
        for result in (one, other)
    ]
    best = one if weights[0] >= weights[1] else other
    known = [b for r in (one, other) if (b := r.bounds.get(goal)) is not None]
    bounds = {**best.bounds, goal: min(known)} if known else best.bounds
    is_proven = len(priorities) == 1 and max(weights)[0] == bounds.get(goal)
    is_proven = is_proven and not demand.has_alternatives
    return EngineResult(
        status=Status.OPTIMAL if is_proven else best.status,
        placements=best.placements,
        bounds=bounds,
        effort=one.effort.plus(other.effort),
    )


def join_parts(
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    placements: Iterable[GangPlacement],
    bounds: Mapping[Goal, int | None],
    effort: Effort,
) -> EngineResult:
    """Make one answer of what was decided in parts.

    It is proven where gangs and extra pods reach their bounds by first choices, and no
    preference is missed. `bounds`: of those goals; one that is left out is reached.
    """
    ordered = tuple(sorted(placements, key=lambda item: item.gang))
    ranks = sum(sum(pod.alternatives) for pod in _pods_of(ordered))
    cost = count_preference_cost(demand, kinds, ordered)
    is_best = all(
        bound == (extra_in if tier is Tier.EXTRA else weight_in)(demand, ordered, level)
        for (tier, level), bound in bounds.items()
        if level is not None
    )
    is_proven = is_best and not ranks and not cost
    return EngineResult(
        status=Status.OPTIMAL if is_proven else Status.FEASIBLE,
        placements=ordered,
        bounds={**bounds, (Tier.ALTERNATIVES, None): 0 if not ranks else None},
        effort=effort,
    )


def _pods_of(placements: tuple[GangPlacement, ...]) -> list[PodPlacement]:
    return [pod for gang in placements for pods in gang.members for pod in pods]


def _value_lost(
    demand: Demand, kinds: tuple[NodeKind, ...], placements: tuple[GangPlacement, ...]
) -> int:
    """Add up the slack value of the touched nodes before, less that after."""
    pods_by_node: dict[NodeName, list[tuple[MemberKind, PodPlacement]]] = defaultdict(
        list
    )
    for placement in placements:
        kinds_of_gang = demand.kinds_of_pods(placement.gang)
        for member_kinds, pods in zip(kinds_of_gang, placement.members, strict=True):
            for kind, pod in zip(member_kinds, pods, strict=False):
                pods_by_node[pod.node].append((demand.member_kinds[kind], pod))
    lost: Counter[NodeShape] = Counter()
    views = (view for kind in kinds for view in kind.nodes)
    touched = (view for view in views if view.name in pods_by_node)
    for view in islice(touched, len(pods_by_node)):
        lost[view.shape] += 1
        lost[_shape_after(view, pods_by_node[view.name])] -= 1
    return sum(
        nodes * value_of_shape(demand.expected, shape)
        for shape, nodes in lost.items()
        if nodes
    )


def _shape_after(
    view: NodeView, pods: list[tuple[MemberKind, PodPlacement]]
) -> NodeShape:
    """Compute a node's shape without what these pods take of it."""
    shape, uses = view.shape, dict[DeviceID, list[RequestAlternative]]()
    for member, pod in pods:
        for request, devices in enumerate(pod.devices):
            asks = member.alternatives(request)
            ask = member.asks[asks[pod.alternatives[request]]]
            for device in () if ask.admin else devices:
                uses.setdefault(device, []).append(ask)
    groups = list(shape.groups)
    counters, sets = list(shape.counters), list(shape.sets)
    for number, (group, named) in enumerate(
        zip(shape.groups, view.groups, strict=True)
    ):
        used = [uses[name] for name in named.devices if name in uses]
        if used:
            groups[number] = _group_after(group, used)
            _charge(counters, sets, group.traits, len(used))
    free = tuple(
        None
        if amount is None
        else amount - sum(member.needs[resource] for member, _ in pods)
        for resource, amount in enumerate(shape.free)
    )
    return structs.replace(
        shape,
        groups=tuple(groups),
        free=free,
        counters=tuple(counters),
        sets=tuple(sets),
    )


def _group_after(group: GroupShape, uses: list[list[RequestAlternative]]) -> GroupShape:
    """Take the used devices away; `uses[device]` are those of one device."""
    left = group.traits.left
    if left is None:
        return structs.replace(group, size=group.size - len(uses))
    for ask in (ask for asks in uses for ask in asks):
        costs = group.traits.costs[ask.kind] or (0,) * len(left)
        left = tuple(amount - cost for amount, cost in zip(left, costs, strict=True))
    # What it draws was charged with its first share.
    return structs.replace(group, traits=Traits(left=left, costs=group.traits.costs))


def _charge(
    counters: list[CounterShape],
    sets: list[tuple[tuple[str, ...] | None, Identity]],
    traits: Traits,
    devices: int,
) -> None:
    """Charge what devices of these traits draw, and narrow their counter sets."""
    for number, amount in traits.draws:
        counter = counters[number]
        left = counter.left - devices * amount
        counters[number] = structs.replace(counter, left=left)
    for number, names in traits.groups:
        allowed, identity = sets[number]
        common = names if allowed is None else tuple(n for n in allowed if n in names)
        sets[number] = (common, identity)
