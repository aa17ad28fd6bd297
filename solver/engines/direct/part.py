"""Some gangs of a batch, placed by a direct model of their own."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from solver.decision import Status
from solver.engines.direct.search import DirectSearch
from solver.engines.goals import EngineResult
from solver.kinds.counting import has_room
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.tiers import Tier

ONE_WORK = 0.5
"""Deterministic time for one gang."""


def place_part(
    problem: Problem, gangs: Iterable[GangPart], work_limit: float = ONE_WORK
) -> EngineResult:
    """Decide which of some gangs are in on what a cluster has left, and how compactly.

    Placements number the gangs as they come here. What is left over for others does
    not count. One gang for which there is no room by counting costs no work.
    """
    demand = Demand(gangs)
    kinds = find_node_kinds(problem, demand.query)
    if len(demand.gangs) == 1 and not has_room(demand, kinds):
        return EngineResult(status=Status.OPTIMAL)
    limited = structs.replace(
        problem.parameters, work_limit=work_limit, last_tier=Tier.TOPOLOGY
    )
    return DirectSearch(demand, kinds, limited).run()
