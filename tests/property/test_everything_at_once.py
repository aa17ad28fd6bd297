"""Tiny batches over all features at once get the best answer, as trying all says.

The judge has agreed to each answer (`allocate`). The two yardsticks of larger batches
(`test_larger_batches.py`) are tried here as well, where the best answer is known.
"""

from __future__ import annotations

from collections import Counter

import pytest

from solver.allocate import allocate
from solver.decision import Status, TierValue
from solver.kinds.affinity.resolve import resolve_affinity
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.draw.everything import FEATURES, RARE, TINY_WITH_RARE, draw_everything
from tests.lab.soak import sized
from tests.oracles.brute import Brute, TooManyWaysError
from tests.oracles.disagreement import LATER, disagreement
from tests.oracles.greedy_floor import GreedyFloor
from tests.oracles.linear_bound import LinearBound

BATCHES = sized(30, 20_000)
AT_ONCE = BATCHES // 10
SEEN: Counter[str] = Counter()


@pytest.mark.parametrize("first", range(0, BATCHES, AT_ONCE))
def test_value_is_that_of_brute_force(first: int) -> None:
    """Tiers equal the best of all answers as far as they are proven; none is above."""
    for seed in range(first, first + AT_ONCE):
        problem, seen = draw_everything(seed, TINY_WITH_RARE)
        tried = resolve_affinity(problem)
        try:
            brute = Brute(tried)
            best = brute.value()
        except TooManyWaysError:
            SEEN["skipped"] += 1
            continue
        decision = allocate(problem)
        wrong = disagreement(decision.objective, brute.tiers(), best)
        assert not wrong, f"seed {seed}: {wrong}"
        is_optimal = decision.status is Status.OPTIMAL
        assert is_optimal == is_proven(decision.objective), f"seed {seed}"
        SEEN["optimal" if is_optimal else "feasible"] += 1
        tiers = zip(brute.tiers(), best, strict=True)
        compare_yardsticks(seed, tried, [v for t, v in tiers if t is Tier.GANGS])
        SEEN.update(feature for feature in (*FEATURES, *RARE) if seen[feature])
        SEEN["in" if any(gang.members for gang in decision.gangs) else "out"] += 1


def is_proven(objective: tuple[TierValue, ...]) -> bool:
    """True if all is proven but what is left over, and nodes.

    Preferences are worth little where what is left over is open, and may be open then.
    """
    is_open = {tier.tier for tier in objective if tier.bound != tier.value}
    assert Tier.LEFTOVER in is_open or is_open <= {Tier.NODES}
    return is_open <= {*LATER}


def compare_yardsticks(seed: int, problem: Problem, best: list[int]) -> None:
    """Greedy is no better than the best of all answers, and no bound is below it."""
    floor, linear = GreedyFloor(problem).best(), LinearBound(problem)
    assert floor <= tuple(best), f"seed {seed}"
    assert linear.of_all() >= sum(best), f"seed {seed}"
    priorities = {gang.priority for gang in problem.gangs if not gang.refused}
    for priority, value in zip(sorted(priorities, reverse=True), best, strict=True):
        assert linear.of_priority(priority) >= value, f"seed {seed}"


def test_every_feature_was_met() -> None:
    """The law above is about all features, and about yes and no."""
    met = SEEN["in"] + SEEN["out"]
    assert SEEN["skipped"] <= BATCHES // 10, SEEN
    assert SEEN["in"] > met // 2, SEEN
    assert SEEN["feasible"] <= met // 20, SEEN
    rare = {name for name in (*FEATURES, *RARE) if SEEN[name] < max(1, met // 50)}
    assert not rare, (rare, SEEN)
