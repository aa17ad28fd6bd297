"""Each goal as an expression: its best value is the one counted by hand."""

from __future__ import annotations

import pytest

from solver.engines import cpsat
from solver.engines.direct.build import require_all_gangs
from solver.engines.direct.objective import (
    allow_first_choices_only,
    gain_of,
    weight_in,
)
from solver.engines.goals import Goal
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.builders import devices as plain_devices
from tests.builders import gang, member, member_claim, pool, request, sub_request
from tests.builders.models import (
    DRAWN_UID,
    maximise,
    model_of,
    solve_model,
    waiting_on,
)
from tests.builders.problems import problem_of, snapshot_of

CHOICE = member(
    member_claim(
        request(
            first_available=[
                sub_request("x", count=4),
                sub_request("y", count=3),
                sub_request("z", count=1),
            ]
        )
    ),
    count=2,
)
"""Two pods of which each would rather have more devices."""


def best(problem: Problem, goal: Goal) -> int:
    """Reach the most for a goal with all gangs in."""
    placements = model_of(problem)
    require_all_gangs(placements)
    gain = gain_of(placements, goal)
    assert gain is not None
    return maximise(placements, gain).value_reached


def test_weight_counts_within_one_priority() -> None:
    """Two gangs of weight 5 and one of 7; another priority adds nothing."""
    weights = [(5, 0), (5, 0), (7, 0), (100, 1)]
    gangs = [
        gang(
            member(),
            name=f"g{number}",
            uid=DRAWN_UID.format(number),
            weight=weight,
            priority=priority,
        )
        for number, (weight, priority) in enumerate(weights)
    ]
    nodes = {"n": [pool(*plain_devices(4), name="n")]}
    problem = problem_of(snapshot_of(nodes, gangs))
    for priority, weight in ((0, 17), (1, 100), (2, 0)):
        placements = model_of(problem)
        assert maximise(placements, weight_in(placements, priority)).value_reached == (
            weight
        )
        assert best(problem, (Tier.GANGS, priority)) == weight


@pytest.mark.parametrize(
    ("devices", "ranks"), [(8, 0), (7, 1), (6, 2), (5, 2), (4, 3), (2, 4)]
)
def test_ranks_add_up_over_pods(devices: int, ranks: int) -> None:
    """A pod with its third choice costs 2, one with its second 1, with its first 0."""
    assert (
        best(waiting_on({"n": devices}, [CHOICE]), (Tier.ALTERNATIVES, None)) == -ranks
    )


@pytest.mark.parametrize(
    ("devices", "outcome"), [(8, cpsat.Solved), (7, cpsat.Infeasible)]
)
def test_without_second_choices_all_pods_have_their_first(
    devices: int, outcome: type[cpsat.Outcome]
) -> None:
    """Seven devices, where two pods want four each, are no answer then."""
    placements = model_of(waiting_on({"n": devices}, [CHOICE]))
    require_all_gangs(placements)
    allow_first_choices_only(placements)
    assert isinstance(solve_model(placements), outcome)


@pytest.mark.parametrize(("pods", "nodes"), [(1, 1), (3, 1), (4, 2), (6, 3)])
def test_a_node_counts_once_however_many_pods_touch_it(pods: int, nodes: int) -> None:
    """Nodes of 3, 2 and 1 devices are touched from the largest on."""
    problem = waiting_on({"a": 1, "b": 3, "c": 2}, [member(count=pods)])
    assert best(problem, (Tier.NODES, None)) == -nodes
