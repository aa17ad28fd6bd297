"""The direct model alone: one model of all nodes that matter, and a limit of seconds.

What deciding costs without patterns. It knows the first goal only, and stops at a
wall-clock limit, which the solver itself never does.
"""

from __future__ import annotations

import time

from msgspec import Struct
from ortools.sat.python import cp_model

from solver.engines.direct.build import build
from solver.engines.direct.objective import weight_in
from solver.engines.direct.restrict import all_needed_nodes
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem


class Found(Struct, frozen=True, kw_only=True):
    """What the model reached."""

    status: str
    value: int
    bound: int
    seconds: float
    variables: int


def direct_alone(problem: Problem, limit_s: float) -> Found:
    """Maximise the first goal on all nodes; the model is built within the time."""
    started = time.perf_counter()
    demand = Demand(problem.gangs)
    kinds = find_node_kinds(problem, demand.query)
    placements = build(demand, all_needed_nodes(kinds, demand))
    gain = weight_in(placements, max(kind.priority for kind in demand.gang_kinds))
    placements.model.maximize(gain)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = problem.parameters.seed
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.symmetry_level = 0
    solver.parameters.linearization_level = 2
    solver.parameters.max_time_in_seconds = limit_s - (time.perf_counter() - started)
    status = solver.solve(cp_model.CpModel(placements.model.proto))
    has_value = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Found(
        status=solver.status_name(status).capitalize(),
        value=round(solver.objective_value) if has_value else 0,
        bound=int(solver.best_objective_bound + 1e-6),
        seconds=time.perf_counter() - started,
        variables=len(placements.model.proto.variables),
    )
