"""Whenever a search is stopped, what it gives is right, and claims no more than it is.

The judge looks at each answer (`allocate`), so here it is about bounds and statuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from solver.allocate import allocate
from solver.decision import DECISION, Decision, Status
from solver.problem.problem import Problem
from solver.stopping import stopped_by
from solver.tiers import Tier
from tests.builders.stopping import StopsAfter
from tests.draw.crowds import crowd, world
from tests.draw.everything import TINY, draw_everything
from tests.draw.gang_worlds import gang_world
from tests.draw.neighbours import neighbourhood

TIMES = (0, 1, 3, 10, 30, 100, 1000)
"""How often a search asks whether it is to end before it is told so."""
MADE: dict[str, Callable[[int], Problem]] = {
    "small": lambda seed: world(seed, nodes=(3, 5), gangs=(3, 6)).problem,
    "rules of gangs": lambda seed: gang_world(seed)[0],
    "rules between pods": neighbourhood,
    "everything": lambda seed: draw_everything(seed, TINY)[0],
}
SEEDS = 12


def stopped(problem: Problem) -> Iterator[Decision]:
    """Stop a search ever later, until it is over before."""
    for times in TIMES:
        stopper = StopsAfter(times)
        with stopped_by(stopper):
            yield allocate(problem)
        if stopper.asked <= times:
            return


def weights(decision: Decision) -> list[int]:
    """List what is in, by priority, highest first."""
    return [tier.value for tier in decision.objective if tier.tier is Tier.GANGS]


def check(problem: Problem) -> None:
    """Compare what is found by then with what is found at last."""
    last = allocate(problem)
    for decision in stopped(problem):
        bounds = [t.bound for t in decision.objective if t.tier is Tier.GANGS]
        pairs = zip(bounds, weights(decision), strict=True)
        assert all(bound is None or bound >= value for bound, value in pairs)
        if bounds and bounds[0] is not None:
            assert bounds[0] >= weights(last)[0]
        if decision.status is Status.OPTIMAL:
            assert weights(decision) >= weights(last)
        if last.status is Status.OPTIMAL:
            assert weights(decision) <= weights(last)
        if any(weights(last)):
            assert any(weights(decision)), "somebody has a place at once"
    assert DECISION.encode(allocate(problem)) == DECISION.encode(last)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_stopped_search_has_an_answer_and_true_bounds(made: str, seed: int) -> None:
    check(MADE[made](seed))


def test_so_it_is_where_patterns_are_priced() -> None:
    check(crowd(30))
