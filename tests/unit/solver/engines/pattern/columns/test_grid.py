"""Node resources are counted as finely as there is room for."""

from __future__ import annotations

import pytest

from solver.engines.pattern.columns.grid import Grid, build_grid
from solver.engines.pattern.states import steps
from solver.engines.pattern.states.graph import build_graph
from solver.errors import TooManyStepsError
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from tests.builders import devices, gang, member, node, pool
from tests.builders.problems import observe_core, problem_of, snapshot_of

UID = "00000000-0000-4000-8000-{:012}"

MANY = ("1100m", "1200m", "1300m", "1400m", "1500m")


def grid_of(*cpus: str, coarseness: int = 1) -> Grid:
    """Lay out a node of 4 devices and 5 CPUs for pods that ask for so much."""
    gangs = [
        gang(member(resources={"cpu": each}), name=f"g{i}", uid=UID.format(i))
        for i, each in enumerate(cpus)
    ]
    snapshot = snapshot_of({"n": [pool(*devices(4), name="n")]}, gangs)
    snapshot = observe_core(snapshot, node("n", allocatable={"cpu": 5, "pods": 99}))
    problem = problem_of(snapshot)
    demand = Demand(problem.gangs)
    graph = build_graph(demand, find_node_kinds(problem, demand.query))
    return build_grid(demand, graph, keeps_all=False, coarseness=coarseness)


def test_resources_that_devices_cannot_use_up_have_no_levels() -> None:
    """Four pods of a CPU each are all that four devices serve."""
    grid = grid_of("1", "1", "1", "1")
    assert grid.resources == ()
    assert grid.bound_steps is grid.steps


def test_a_scarce_resource_is_counted_exactly_where_there_is_room() -> None:
    """Then answers and bounds are of the same steps."""
    grid = grid_of("2", "3", "3")
    assert len(grid.resources) == 1
    assert grid.bound_steps is grid.steps


def test_coarse_levels_are_other_steps_for_answers_than_for_bounds() -> None:
    """Pods are rounded up for answers: they take no more steps than for bounds."""
    fine, coarse = grid_of("2", "3", "3"), grid_of("2", "3", "3", coarseness=4)
    assert coarse.bound_steps is not coarse.steps
    assert coarse.resources[0].unit == 4 * fine.resources[0].unit
    assert len(coarse.steps.source) <= len(coarse.bound_steps.source)


def test_steps_that_are_too_many_are_made_in_coarser_levels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As fine as there is room for, not finer."""
    fine, coarse = grid_of(*MANY), grid_of(*MANY, coarseness=16)
    assert len(coarse.bound_steps.source) < len(fine.steps.source)
    monkeypatch.setattr(steps, "MAX_STEPS", len(coarse.bound_steps.source))
    made = grid_of(*MANY)
    assert made.bound_steps is not made.steps
    assert fine.resources[0].unit < made.resources[0].unit


def test_what_has_too_many_steps_however_coarse_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another model must decide."""
    monkeypatch.setattr(steps, "MAX_STEPS", 1)
    with pytest.raises(TooManyStepsError):
        grid_of("2", "3", "3")
