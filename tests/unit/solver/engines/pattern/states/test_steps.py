"""Steps lead from higher points to lower ones, as far as node resources reach."""

from __future__ import annotations

import numpy as np
import pytest

from solver.engines.pattern.states.graph import build_graph
from solver.engines.pattern.states.resources import ResourceLevels
from solver.engines.pattern.states.steps import Steps
from solver.errors import TooManyStepsError
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from tests.builders import member, member_claim, request
from tests.builders.models import waiting_on

DEVICES = 6


def steps_of(
    start: int | None = None,
    *,
    cap: int = 9,
    cap_is_endless: bool = False,
    pods: int = 9,
) -> Steps:
    """Follow pods of one device and one level of a resource over a node of six."""
    problem = waiting_on({"n": DEVICES}, [member(count=pods)])
    demand = Demand(problem.gangs)
    graph = build_graph(demand, find_node_kinds(problem, demand.query))
    levels = ResourceLevels(((),), ((),), ())
    if start is not None:
        caps = ((cap,) * len(graph.states),)
        levels = ResourceLevels(((1,),), ((start,),), caps, cap_is_endless)
    return Steps(
        graph, demand.member_kinds, levels, [node.state for node in graph.classes]
    )


def test_every_step_leads_down() -> None:
    """From low to high each target is met before its source."""
    problem = waiting_on(
        {"a": 7, "b": 4},
        [member(count=5), member(member_claim(request(count=2)), name="p", count=4)],
    )
    demand = Demand(problem.gangs)
    graph = build_graph(demand, find_node_kinds(problem, demand.query))
    nothing = ResourceLevels(((), ()), ((), ()), ())
    roots = [node.state for node in graph.classes]
    steps = Steps(graph, demand.member_kinds, nothing, roots)
    assert len(steps.source) == len(graph.edges)
    assert (steps.target < steps.source).all()
    assert (np.diff(steps.source) >= 0).all()
    assert [steps.states[point] for point in steps.roots] == roots
    for point in range(len(steps.states)):
        first, end = steps.first[point], steps.first[point + 1]
        assert (steps.source[first:end] == point).all()
    ends = [0, *(end for _, end, _ in steps.blocks)]
    assert [first for first, _, _ in steps.blocks] == ends[:-1]
    assert ends[-1] == len(steps.source)


@pytest.mark.parametrize(("start", "count"), [(0, 0), (2, 2), (6, 6), (9, 6)])
def test_steps_end_where_a_resource_does(start: int, count: int) -> None:
    """Each pod takes a level and a device: the scarcer one counts."""
    steps = steps_of(start)
    assert len(steps.source) == count
    assert sorted(steps.levels[:, 0]) == list(range(count + 1))


def test_levels_beyond_what_a_state_can_use_are_one() -> None:
    """A cap of two lets no point have more."""
    steps = steps_of(2, cap=2)
    assert steps.levels.max() == 2
    assert len(steps.source) == 2


def test_nothing_lessens_a_level_that_stands_for_no_limit() -> None:
    """All devices are taken, and the cap is still there."""
    steps = steps_of(2, cap=2, cap_is_endless=True)
    assert len(steps.source) == DEVICES
    assert set(steps.levels[:, 0]) == {2}


def test_steps_go_as_deep_as_the_batch_has_pods() -> None:
    """Two pods take two devices of six."""
    assert len(steps_of(pods=2).source) == 2


def test_levels_that_are_too_fine_are_refused() -> None:
    """Points are numbered in 64 bits."""
    with pytest.raises(TooManyStepsError):
        steps_of(1, cap=1 << 62)
