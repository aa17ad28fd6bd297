"""A reason that blames devices, nodes or constraints is true, as trying all ways says.

It speaks of the gang as if it were alone on the cluster as it is: then no way to place
its pods may exist. That others come first is said only of who has a place alone.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from contracts.allocation import Reason, Rule
from solver.allocate import allocate
from solver.kinds.affinity.resolve import resolve_affinity
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from tests.draw.everything import TINY, draw_everything
from tests.oracles.brute import Brute, TooManyWaysError

BATCHES = 2_000 if os.environ.get("MOORINGS_SOAK") else 40
AT_ONCE = BATCHES // 10
OF_OTHERS = {
    Rule.POD_APART,
    Rule.POD_NEAR,
    Rule.POD_SPREAD,
    Rule.GROWING,
    Rule.CLAIM_SHARED,
    Rule.DEVICE_QUOTA,
    Rule.RESOURCE_QUOTA,
    Rule.NOT_MODELLED,
}
SEEN: Counter[str] = Counter()


@pytest.mark.parametrize("first", range(0, BATCHES, AT_ONCE))
def test_whoever_is_refused_has_no_place_alone(first: int) -> None:
    """So says every reason that is not about others."""
    for seed in range(first, first + AT_ONCE):
        problem, _ = draw_everything(seed, TINY)
        decision = allocate(problem)
        for gang, decided in zip(problem.gangs, decision.gangs, strict=True):
            rules = {reason.rule for reason in decided.reasons}
            if gang.refused or not rules or rules & OF_OTHERS:
                continue
            if "no place" in say(decided.reasons):
                SEEN["nothing is blamed"] += 1
                continue
            try:
                has_place = can_be_placed(problem, gang)
            except TooManyWaysError:
                SEEN["skipped"] += 1
                continue
            is_outranked = Rule.OUTRANKED in rules
            assert has_place == is_outranked, f"seed {seed}: {say(decided.reasons)}"
            SEEN.update(map(str, rules))


def can_be_placed(problem: Problem, gang: GangPart) -> bool:
    """Try all ways to place one gang alone, with the pods that it needs."""
    alone = problem.with_gangs((gang.core,))
    return Brute(resolve_affinity(alone)).value()[0] > 0


def say(reasons: tuple[Reason, ...]) -> str:
    return "; ".join(map(str, reasons))


def test_many_causes_were_met() -> None:
    """The law above is about every cause."""
    blamed = SEEN.total() - SEEN["skipped"] - SEEN["nothing is blamed"]
    assert blamed > BATCHES // 8, SEEN
    assert len(SEEN) > 4, SEEN
