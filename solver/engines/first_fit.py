"""What is constructed as the floor of every answer: gangs in turn, each where it fits.

An engine that stops at its limit may have placed less, or nothing at all. Then gangs
placed one after the other are the answer, with the bound that is known.
"""

from __future__ import annotations

from msgspec import structs

from solver.decision import Status
from solver.engines.apart import can_be_apart, place_in_turn
from solver.engines.choose import (
    DIRECT,
    PACKING,
    Decided,
    EngineChoice,
    choose_engine,
)
from solver.engines.construct.floor import raise_to, value_of
from solver.engines.construct.search import Constructed, construct, find_unknown
from solver.engines.goals import EngineResult, Goal
from solver.engines.greedy.search import GreedySearch
from solver.engines.progress import Progress
from solver.engines.relaxation import CapacityProgram
from solver.engines.truncated import TRUNCATED
from solver.errors import PatternLimitError
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind
from solver.problem.expected import MOST_PODS
from solver.problem.problem import Parameters, Problem
from solver.tiers import Tier

FIRST_FIT = "first fit"
MOST_IN_TURN = 5_000
"""Gangs times nodes of a batch that the direct model decides in turn."""


def at_least_constructed(
    problem: Problem,
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    parameters: Parameters,
    decided: Decided,
) -> Decided:
    """Return the answer, or a constructed one by which more is in.

    That is more weight, priority by priority, then more extra pods. A proven answer is
    returned as it is, and so is one that was chosen with what is constructed at hand.
    """
    choice, result = decided
    is_at_hand = choice.engine in {PACKING, TRUNCATED} and not demand.is_elastic
    if result.status is Status.OPTIMAL or is_at_hand:
        return decided
    last = parameters.last_tier
    raised = result
    for constructed in _list_constructed(demand, kinds, decided):
        raised = raise_to(demand, raised, constructed, last)
    if find_unknown(demand) and can_be_apart(demand):
        raised = _raise_to_turns(problem, demand, kinds, parameters, raised)
    if raised.placements == result.placements and choice.engine != DIRECT:
        return choice, raised
    bounds = _with_first_bound(demand, kinds, raised)
    raised = structs.replace(raised, bounds=bounds)
    if raised.placements == result.placements:
        return choice, raised
    reason = f"{choice.engine} found less: {choice.reason}"
    return EngineChoice(FIRST_FIT, reason), raised


def _list_constructed(
    demand: Demand, kinds: tuple[NodeKind, ...], decided: Decided
) -> list[Constructed]:
    """Construct what the engine had not at hand.

    Where every rule is about one node, pods go where least value is lost; of many pods
    only where the answer places none.
    """
    choice, result = decided
    is_known = choice.engine == DIRECT
    if choose_engine(demand, kinds).engine == DIRECT:
        return [] if is_known else [construct(demand, kinds)]
    if result.placements and sum(demand.pods) > MOST_PODS:
        return []
    try:
        placements = GreedySearch(demand, kinds).run(range(len(demand.gangs)))
    except PatternLimitError:
        return [] if is_known else [construct(demand, kinds)]
    return [Constructed(placements, value_of(demand, placements))]


def _raise_to_turns(
    problem: Problem,
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    parameters: Parameters,
    result: EngineResult,
) -> EngineResult:
    """Return the answer, or what the direct model finds gang by gang, if it is better.

    Only for rules that construction does not know; in large batches only where the
    answer places none.
    """
    nodes = sum(len(kind.nodes) for kind in kinds)
    if result.placements and len(demand.gangs) * nodes > MOST_IN_TURN:
        return result
    order = sorted(
        range(len(demand.gangs)), key=lambda gang: (-demand.gangs[gang].priority, gang)
    )
    progress = place_in_turn(Progress(problem, demand.gangs), order, nodes)
    placements = tuple(sorted(progress.placements, key=lambda item: item.gang))
    result = structs.replace(result, effort=result.effort.plus(progress.effort))
    in_turn = Constructed(placements, value_of(demand, placements))
    return raise_to(demand, result, in_turn, parameters.last_tier)


def _with_first_bound(
    demand: Demand, kinds: tuple[NodeKind, ...], result: EngineResult
) -> dict[Goal, int | None]:
    """Bound the weight of the highest priority by counting, if that says more."""
    highest = max(gang.priority for gang in demand.gangs)
    goal: Goal = (Tier.GANGS, highest)
    known = result.bounds.get(goal)
    everything = sum(g.weight for g in demand.gangs if g.priority == highest)
    if demand.is_elastic or (known is not None and known < everything):
        return result.bounds
    counted = CapacityProgram(demand, kinds).relax(highest).bound
    return {**result.bounds, goal: min(counted, everything)}
