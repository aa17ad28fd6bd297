"""Batches of dozens of nodes over all features lie between two yardsticks.

They are too large to try everything, so an answer is compared with what plain Python
knows of it: greedy in several orders reaches a floor, and linear programs over what the
cluster has together give a bound. Neither shares any code with the engines. The judge
has agreed to each answer (`allocate`).
"""

from __future__ import annotations

from collections import Counter

import pytest

from solver.allocate import allocate
from solver.decision import Decision
from solver.kinds.affinity.resolve import resolve_affinity
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.draw.everything import FEATURES, MIDDLE, draw_everything
from tests.lab.soak import SOAK
from tests.oracles.greedy_floor import GreedyFloor
from tests.oracles.linear_bound import LinearBound

BATCHES, AT_ONCE = (500, 50) if SOAK else (2, 1)
"""Most take two processors a quarter of a minute."""
SEEN: Counter[str] = Counter()


@pytest.mark.parametrize("first", range(0, BATCHES, AT_ONCE))
def test_answers_lie_between_greedy_and_linear_programs(first: int) -> None:
    """No answer is below the floor or above a bound, and no bound below the floor."""
    for seed in range(first, first + AT_ONCE):
        problem, seen = draw_everything(seed, MIDDLE)
        tried = resolve_affinity(problem)
        decision = allocate(problem)
        assert_between(seed, tried, decision)
        SEEN.update(feature for feature in FEATURES if seen[feature])
        SEEN[decision.statistics.engine] += 1


def assert_between(seed: int, problem: Problem, decision: Decision) -> None:
    """Compare the weight that is in, priority by priority."""
    floor, linear = GreedyFloor(problem).best(), LinearBound(problem)
    weights = weights_in(problem, decision)
    tiers = {t.priority: t for t in decision.objective if t.tier is Tier.GANGS}
    reached = tuple(weights.values())
    assert reached >= floor, f"seed {seed}: {reached} is below greedy's {floor}"
    assert sum(reached) <= linear.of_all(), f"seed {seed}"
    for number, (priority, value) in enumerate(weights.items()):
        assert tiers[priority].value == value, f"seed {seed}: what is reported"
        assert value <= linear.of_priority(priority), f"seed {seed}"
        # A bound is about answers that are as good in all that is more urgent.
        bound = tiers[priority].bound
        if bound is not None and floor[:number] == reached[:number]:
            assert bound >= max(value, floor[number]), f"seed {seed}: its bound"


def weights_in(problem: Problem, decision: Decision) -> dict[int, int]:
    """Add up the weight that is in, by priority, highest first."""
    asking = [gang for gang in problem.gangs if not gang.refused]
    weights = dict.fromkeys(sorted({g.priority for g in asking}, reverse=True), 0)
    verdicts = {answer.key: answer.verdict for answer in decision.gangs}
    for gang in asking:
        if verdicts[gang.key] == "allocated":
            weights[gang.priority] += gang.weight
    return weights


def test_every_feature_was_met() -> None:
    """The law above is about all features together."""
    assert not {name for name in FEATURES if not SEEN[name]}, SEEN
