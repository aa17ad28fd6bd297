"""True if gangs that were taken in one by one are worth more than another answer."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from solver.decision import Status
from solver.engines.construct.search import Constructed, construct, count_extra
from solver.engines.goals import EngineResult, Goal, goals_of
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement
from solver.tiers import Tier


def raise_to(
    demand: Demand, result: EngineResult, constructed: Constructed, last: Tier
) -> EngineResult:
    """Return the answer, or the constructed one where that is worth more.

    A bound is about answers that keep what is reached of earlier goals, so it holds up
    to the first goal in which the two differ; below that all gangs are the bound.
    """
    reached = value_of(demand, result.placements)
    if result.status is Status.OPTIMAL or constructed.value <= reached:
        return result
    goals = [*_list_goals(demand)]
    differing = next(
        number
        for number, pair in enumerate(zip(constructed.value, reached, strict=True))
        if pair[0] != pair[1]
    )
    bounds: dict[Goal, int | None] = dict.fromkeys(goals_of(demand, last))
    for goal in tuple(bounds):
        if goal in goals and goals.index(goal) <= differing:
            bounds[goal] = result.bounds.get(goal)
        if bounds[goal] is None and goal[0] is Tier.GANGS:
            bounds[goal] = sum(g.weight for g in demand.gangs if g.priority == goal[1])
    return structs.replace(
        result,
        status=Status.FEASIBLE,
        placements=constructed.placements,
        bounds=bounds,
    )


def complete(
    demand: Demand, kinds: Sequence[NodeKind], result: EngineResult, last: Tier
) -> EngineResult:
    """Add gangs to an answer, or to what of it is proven, where that is worth more."""
    if result.status is Status.OPTIMAL or not result.placements:
        return result
    reached = value_of(demand, result.placements)
    proven = set[int]()
    for priority, value in zip(_list_priorities(demand), reached, strict=False):
        if proven and result.bounds.get((Tier.GANGS, priority), value) != value:
            break
        proven.add(priority)
    kept = tuple(
        item for item in result.placements if demand.gangs[item.gang].priority in proven
    )
    best = raise_to(demand, result, construct(demand, kinds, result.placements), last)
    if len(kept) < len(result.placements):
        best = raise_to(demand, best, construct(demand, kinds, kept), last)
    return best


def value_of(demand: Demand, placements: Sequence[GangPlacement]) -> tuple[int, ...]:
    """Add up the weight that is in by priority, highest first; then the extra pods."""
    weights = dict.fromkeys(_list_priorities(demand), 0)
    extra = dict(weights)
    for placement in placements:
        priority = demand.gangs[placement.gang].priority
        weights[priority] += demand.gangs[placement.gang].weight
        counts = [len(pods) for pods in placement.members]
        extra[priority] += count_extra(demand, placement.gang, counts)
    return (*weights.values(), *extra.values())


def _list_goals(demand: Demand) -> list[Goal]:
    """List what the numbers of a value are reached of, in their order."""
    tiers = (Tier.GANGS, Tier.EXTRA)
    return [(tier, p) for tier in tiers for p in _list_priorities(demand)]


def _list_priorities(demand: Demand) -> list[int]:
    return sorted({gang.priority for gang in demand.gangs}, reverse=True)
