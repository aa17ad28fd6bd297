"""Which engine decides, and one answer from either.

First counting alone: gangs that no node set could hold are out. Then the pattern model,
unless something in the batch reaches over nodes: the direct model states every rule and
is the reference. Limits are work units, so the answer is a function of the Problem.
"""

from __future__ import annotations

from msgspec import Struct, structs

from solver.decision import Statistics, Status, TierValue
from solver.engines.choose import DIRECT, PATTERN, Plan, planned
from solver.engines.direct.search import DirectSearch
from solver.engines.goals import Effort, Found
from solver.engines.pattern.search import PatternSearch
from solver.engines.tier_values import reported
from solver.errors import PatternLimitError
from solver.kinds.counting import pods_at_most
from solver.kinds.demand import Demand
from solver.kinds.nodes import NodeKind, node_kinds
from solver.placement import Placed
from solver.problem.problem import Parameters, Problem

SMALL = 1_000
"""Pods times nodes of a batch that the direct model decides soon."""
SMALL_WORK = 1.0


class Answer(Struct, frozen=True, kw_only=True):
    """What was found for the gangs of a demand."""

    status: Status
    placed: tuple[Placed, ...]
    hopeless: tuple[int, ...]
    """Gangs that do not fit even alone, by counting; indices into the demand."""
    tiers: tuple[TierValue, ...]
    statistics: Statistics


def answer(problem: Problem, engine: str | None = None) -> Answer:
    """Decide the batch; `engine` leaves the planner no choice."""
    expected = problem.expected
    demand = Demand(problem.gangs, expected=expected)
    kinds = node_kinds(problem, demand.query)
    hopeless = _hopeless(demand, kinds)
    left_out = set(hopeless)
    hopeful = Demand(
        (gang for index, gang in enumerate(demand.gangs) if index not in left_out),
        expected=expected,
    )
    names = [index for index in range(len(demand.gangs)) if index not in left_out]
    if hopeless and hopeful.gangs and hopeful.query != demand.query:
        kinds = node_kinds(problem, hopeful.query)
    plan, found = Plan(), Found(status=Status.OPTIMAL)
    if hopeful.gangs:
        plan, found = _found(hopeful, kinds, problem.parameters, engine)
    return Answer(
        status=found.status,
        placed=tuple(Placed(names[item.gang], item.members) for item in found.placed),
        hopeless=hopeless,
        tiers=reported(demand, hopeful, kinds, found, problem.parameters.tiers),
        statistics=_statistics(kinds, plan, found.effort),
    )


def _found(
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    parameters: Parameters,
    engine: str | None,
) -> tuple[Plan, Found]:
    """Let the engine decide that is made for such a batch."""
    plan = planned(demand, kinds)
    if engine is not None:
        plan = Plan(engine, "as asked")
    if plan.engine == PATTERN:
        try:
            found = PatternSearch(demand, kinds, parameters).run()
        except PatternLimitError as error:
            if engine is not None:
                raise
            plan = Plan(DIRECT, str(error))
        else:
            if engine is None and found.status is not Status.OPTIMAL:
                return _closed(demand, kinds, parameters, (plan, found))
            return plan, found
    return plan, DirectSearch(demand, kinds, parameters).run()


def _closed(
    demand: Demand,
    kinds: tuple[NodeKind, ...],
    parameters: Parameters,
    reached: tuple[Plan, Found],
) -> tuple[Plan, Found]:
    """Let the direct model try where patterns left a gap, if the batch is small."""
    if sum(demand.pods) * sum(len(kind.nodes) for kind in kinds) > SMALL:
        return reached
    work_limit = min(parameters.work_limit, SMALL_WORK)
    less = structs.replace(parameters, work_limit=work_limit)
    found = DirectSearch(demand, kinds, less).run()
    if found.status is not Status.OPTIMAL:
        return reached
    return Plan(DIRECT, "patterns were not proven best, and it is small"), found


def _statistics(kinds: tuple[NodeKind, ...], plan: Plan, effort: Effort) -> Statistics:
    groups = {(g.mask, g.values) for kind in kinds for g in kind.shape.groups}
    return Statistics(
        node_kinds=len(kinds),
        device_kinds=len(groups),
        engine=plan.engine,
        engine_reason=plan.reason,
        patterns=effort.patterns,
        models=effort.models,
        variables=effort.variables,
        constraints=effort.constraints,
        work=effort.work,
    )


def _hopeless(demand: Demand, kinds: tuple[NodeKind, ...]) -> tuple[int, ...]:
    """Find the gangs that all nodes together cannot hold, by counting."""
    room = [
        sum(pods_at_most(member, kind.shape) * len(kind.nodes) for kind in kinds)
        for member in demand.member_kinds
    ]
    return tuple(
        sorted(
            gang
            for gang_kind, gangs in demand.gang_kinds.items()
            if any(pods > room[m] for m, pods in gang_kind.members)
            for gang in gangs
        )
    )
