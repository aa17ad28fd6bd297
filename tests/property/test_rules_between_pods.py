"""Pods that care about each other get the best answer there is, as trying all says.

Each answer was judged as well, by `allocate`, pod by pod.
"""

from __future__ import annotations

from collections import Counter

import pytest

from contracts.allocation import Rule
from solver.allocate import allocate
from solver.decision import Status
from solver.engines.choose import DIRECT, PATTERN
from solver.engines.solve import answer
from solver.kinds.affinity.resolve import resolve_affinity
from solver.tiers import Tier
from tests.draw.neighbours import neighbourhood
from tests.lab.soak import sized
from tests.oracles.brute import Brute, TooManyWaysError
from tests.oracles.disagreement import disagreement

WORLDS = sized(400, 100_000)
AT_ONCE = WORLDS // 20
FIRST = (Tier.GANGS, Tier.ALTERNATIVES)
SEEN: Counter[str] = Counter()


@pytest.mark.parametrize("first", range(0, WORLDS, AT_ONCE))
def test_value_is_that_of_brute_force(first: int) -> None:
    """Every tier equals the best of all answers, whichever engine decided.

    What is about single nodes is counted: then both engines find the same.
    """
    for seed in range(first, first + AT_ONCE):
        problem = neighbourhood(seed)
        tried = resolve_affinity(problem)
        try:
            brute = Brute(tried)
            best = brute.value()
        except TooManyWaysError:
            SEEN["skipped"] += 1
            continue
        decision = allocate(problem)
        SEEN[decision.statistics.engine or "none"] += 1
        rules = {r.rule for gang in decision.gangs for r in gang.reasons}
        SEEN.update(rule.value for rule in rules)
        SEEN["in"] += any(gang.members for gang in decision.gangs)
        if decision.statistics.engine == PATTERN:
            other = answer(tried, DIRECT)
            values = [tier.value for tier in decision.objective if tier.tier in FIRST]
            assert values == [t.value for t in other.tiers if t.tier in FIRST], seed
        assert decision.status is Status.OPTIMAL, seed
        assert disagreement(decision.objective, brute.tiers(), best) == "", seed


def test_every_outcome_was_met() -> None:
    """Both engines decided, gangs were in, and some of every rule's were not."""
    least = {"direct": WORLDS // 40, "pattern": WORLDS // 40, "in": WORLDS // 5}
    assert all(SEEN[key] >= count for key, count in least.items()), SEEN
    assert SEEN["skipped"] < WORLDS // 20, SEEN
    assert SEEN[Rule.NOT_MODELLED.value] < WORLDS // 6, SEEN
