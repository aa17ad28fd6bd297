"""Direct models for tests: of a Problem, under all rules or all but one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contracts.gang import Member
from solver.engines import cp_model, cpsat
from solver.engines.direct.build import require_all_gangs
from solver.engines.direct.rules import RULES
from solver.engines.direct.variables import Placements
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.problem.problem import Problem
from tests.builders.devices import devices, pool
from tests.builders.gangs import gang
from tests.builders.problems import problem_of, snapshot_of

DRAWN_UID = "00000000-0000-4000-8000-{:012}"
WORK = 10.0
"""Deterministic time that no model of these tests needs."""
Rule = Callable[[Placements], None]


def waiting_on(sizes: Mapping[str, int], *gangs_of: Sequence[Member]) -> Problem:
    """Let gangs of such members wait for nodes with so many plain devices."""
    nodes = {name: [pool(*devices(size), name=name)] for name, size in sizes.items()}
    gangs = [
        gang(*members, name=f"g{number}", uid=DRAWN_UID.format(number))
        for number, members in enumerate(gangs_of)
    ]
    return problem_of(snapshot_of(nodes, gangs))


def model_of(
    problem: Problem, *, without: Rule | None = None, **demand: Any
) -> Placements:
    """Build the direct model over all nodes, under all rules but one."""
    asked = Demand(problem.gangs, expected=problem.expected, **demand)
    kinds = find_node_kinds(problem, asked.query)
    views = tuple(view for kind in kinds for view in kind.nodes)
    placements = Placements(cp_model.CpModel(), asked, views)
    for rule in RULES:
        if rule is not without:
            rule(placements)
    return placements


def solve_model(placements: Placements) -> cpsat.Outcome:
    """Solve a model as it is."""
    return cpsat.solve(placements.model, work_limit=WORK, seed=1, feasibility=False)


def place_all(problem: Problem, *, without: Rule | None = None) -> cpsat.Outcome:
    """Place all gangs, under all rules but one."""
    placements = model_of(problem, without=without)
    require_all_gangs(placements)
    return solve_model(placements)


def maximise(placements: Placements, gain: cp_model.LinearExprT) -> cpsat.Solved:
    """Solve for the most of something, which the model must have."""
    placements.model.maximize(gain)
    outcome = solve_model(placements)
    assert isinstance(outcome, cpsat.Solved)
    assert outcome.optimal
    return outcome
