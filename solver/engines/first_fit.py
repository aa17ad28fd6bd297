"""First fit as the floor of every answer: gangs in their order, each where it fits.

An engine that stops at its limit may have placed less, or nothing at all. Then gangs
placed one after the other are the answer, with the bound that is known.
"""

from __future__ import annotations

from msgspec import structs

from solver.decision import Status
from solver.engines.apart import APART, PlacedGangs, can_be_apart, place_in_turn
from solver.engines.choose import DIRECT, Decided, EngineChoice, choose_engine
from solver.engines.direct.search import DirectSearch
from solver.engines.goals import Effort, EngineResult, Goal, goals_of
from solver.engines.greedy.search import GreedySearch
from solver.engines.relaxation import CapacityProgram
from solver.engines.tier_values import weight_in
from solver.engines.truncated import TRUNCATED
from solver.errors import PatternLimitError
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement
from solver.problem.expected import MOST_PODS
from solver.problem.problem import Parameters, Problem
from solver.stopping import is_stopped, never_stopped
from solver.tiers import Tier

FIRST_FIT = "first fit"
MOST_IN_TURN = 5_000
"""Gangs times nodes of a batch with an answer that is decided in turn as well."""
PART_WORK = 1.0
"""Deterministic time of the direct model for a part of the gangs."""
MOST_AFTER_STOP = 8
"""Gangs that are placed where the caller ended a search that had placed none."""


def raise_to_first_fit(
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    parameters: Parameters,
    decided: Decided,
) -> Decided:
    """Return the answer, or that of first fit where more weight is in by it.

    Batches with rules over several nodes are returned as they are, and so is an answer
    that was chosen with that of first fit at hand. Many pods are placed one after the
    other only where the answer places none.
    """
    choice, result = decided
    if result.status is Status.OPTIMAL or choice.engine == TRUNCATED:
        return decided
    if result.placements and sum(demand.pods) > MOST_PODS:
        return decided
    if choose_engine(demand, kinds).engine == DIRECT:
        return decided
    try:
        placements = GreedySearch(demand, kinds).run(range(len(demand.gangs)))
    except PatternLimitError:
        return decided
    if _weights(demand, placements) <= _weights(demand, result.placements):
        return decided
    return _first_fit(demand, kinds, parameters, decided, placements)


def raise_to_turns(
    problem: Problem,
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    decided: Decided,
) -> Decided:
    """Return an answer that the direct model had a part in, or a better one in turn.

    Gangs are placed in their order by the direct model, each on what is left; in large
    batches only where the answer places none. Where pods have rules about each other,
    an answer without any pod gives way to one of fewer gangs: the first half, a
    quarter, and so on.
    """
    choice, result = decided
    if choice.engine not in (APART, DIRECT) or result.status is Status.OPTIMAL:
        return decided
    nodes = sum(len(kind.nodes) for kind in kinds)
    if result.placements and len(demand.gangs) * nodes > MOST_IN_TURN:
        return decided
    order = sorted(
        range(len(demand.gangs)), key=lambda gang: (-demand.gangs[gang].priority, gang)
    )
    placements, effort = _place_in_order(problem, demand, order, nodes, result)
    if is_stopped() and not placements and not result.placements:
        with never_stopped():
            few = order[:MOST_AFTER_STOP]
            placements = _place_fewer(problem, demand, few, len(few))
    result = structs.replace(result, effort=result.effort.plus(effort))
    decided = choice, result
    if _weights(demand, placements) <= _weights(demand, result.placements):
        return decided
    return _first_fit(demand, kinds, problem.parameters, decided, placements)


def _first_fit(
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    parameters: Parameters,
    decided: Decided,
    placements: tuple[GangPlacement, ...],
) -> Decided:
    choice, result = decided
    reason = f"{choice.engine} found less: {choice.reason}"
    return EngineChoice(FIRST_FIT, reason), structs.replace(
        result,
        status=Status.FEASIBLE,
        placements=placements,
        bounds=_bounds(demand, kinds, parameters, result),
    )


def _place_in_order(
    problem: Problem,
    demand: Demand,
    order: list[int],
    nodes: int,
    result: EngineResult,
) -> tuple[tuple[GangPlacement, ...], Effort]:
    """Place gangs in turn, or, where pods have rules about each other, fewer of them.

    Returns what it cost as well.
    """
    if can_be_apart(demand):
        placed = place_in_turn(PlacedGangs(problem), demand.gangs, order, nodes)
        return tuple(sorted(placed.placements, key=lambda p: p.gang)), placed.effort
    if result.placements:
        return (), Effort()
    return _place_fewer(problem, demand, order, len(order) // 2), Effort()


def _place_fewer(
    problem: Problem, demand: Demand, order: list[int], fewer: int
) -> tuple[GangPlacement, ...]:
    """Decide ever fewer of the most urgent gangs, until some have a place.

    `fewer`: how many at first.
    """
    limited = structs.replace(problem.parameters, work_limit=PART_WORK)
    while fewer and not is_stopped():
        gangs = sorted(order[:fewer])
        part = Demand(demand.gangs[gang] for gang in gangs)
        kinds = find_node_kinds(problem, part.query)
        placements = DirectSearch(part, kinds, limited).run().placements
        if placements:
            return tuple(
                GangPlacement(gangs[item.gang], item.members) for item in placements
            )
        fewer //= 2
    return ()


def _weights(demand: Demand, placements: tuple[GangPlacement, ...]) -> list[int]:
    """Add up the weight that is in, by priority, highest first."""
    return [weight_in(demand, placements, p) for p in _priorities(demand)]


def _bounds(
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    parameters: Parameters,
    result: EngineResult,
) -> dict[Goal, int | None]:
    """Bound each goal: the first as it was or by counting, other weights by all gangs.

    What was proven of later goals holds for answers that keep what the former one
    reached of earlier goals, and is lost.
    """
    bounds: dict[Goal, int | None] = dict.fromkeys(
        goals_of(demand, parameters.last_tier)
    )
    for priority in _priorities(demand):
        gangs = [gang for gang in demand.gangs if gang.priority == priority]
        bounds[Tier.GANGS, priority] = sum(gang.weight for gang in gangs)
    highest = _priorities(demand)[0]
    known = result.bounds.get((Tier.GANGS, highest))
    if known is None and not demand.is_elastic:
        known = CapacityProgram(demand, kinds).relax(highest).bound
    if known is not None:
        bounds[Tier.GANGS, highest] = known
    return bounds


def _priorities(demand: Demand) -> list[int]:
    """List the priorities of the batch, highest first."""
    return sorted({gang.priority for gang in demand.gangs}, reverse=True)
