"""Gangs that are taken in one by one are always placed by the rules, all of them.

The judge says so of batches over all features, of the rules of gangs, of pods with
rules about each other and of shared claims; trying all answers says that the value is
no more than the best.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from solver import allocate as pipeline
from solver.decision import Decision, Statistics, Status
from solver.engines.construct.floor import value_of
from solver.engines.construct.search import construct
from solver.engines.goals import EngineResult, goals_of
from solver.engines.solve import Answer
from solver.engines.tier_values import tier_values_of
from solver.kinds.affinity.resolve import resolve_affinity
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.sharing import SharedClaimLayouts
from solver.placement import GangPlacement
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.draw.everything import FEATURES, MIDDLE, TINY, draw_everything
from tests.oracles.brute import Brute, TooManyWaysError

BATCHES = 1_000 if os.environ.get("MOORINGS_SOAK") else 60
LARGE = BATCHES // 20
SEEN: Counter[str] = Counter()


def construct_answer(problem: Problem) -> Answer:
    """Answer a batch by what is constructed, in place of all engines."""
    sharing = SharedClaimLayouts(problem)
    asked = [gang for gang in problem.gangs if not gang.refused]
    demand = Demand(sharing.problem.gangs, expected=problem.expected)
    kinds = find_node_kinds(sharing.problem, demand.query)
    found = construct(demand, kinds)
    assert value_of(demand, found.placements) == found.value
    last = problem.parameters.last_tier
    result = EngineResult(
        status=Status.FEASIBLE,
        placements=found.placements,
        bounds=dict.fromkeys(goals_of(demand, last)),
    )
    return Answer(
        status=Status.FEASIBLE,
        placements=tuple(
            sharing.join(asked[item.gang], GangPlacement(item.gang, item.members))
            for item in found.placements
        ),
        hopeless=(),
        tiers=tier_values_of(demand, demand, kinds, result, last),
        statistics=Statistics(),
    )


@pytest.fixture(autouse=True)
def constructed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing but construction answer; the judge looks at each answer."""
    monkeypatch.setattr(pipeline, "answer", construct_answer)


def weights_of(decision: Decision) -> tuple[int, ...]:
    """List the weight that is in by priority, highest first."""
    return tuple(t.value for t in decision.objective if t.tier is Tier.GANGS)


@pytest.mark.parametrize("first", range(0, BATCHES, BATCHES // 10))
def test_tiny_batches_are_valid_and_never_above_the_best(first: int) -> None:
    """By priority, what is in is no more than trying all answers finds."""
    for seed in range(first, first + BATCHES // 10):
        problem, seen = draw_everything(seed, TINY)
        reached = weights_of(pipeline.allocate(problem))
        SEEN.update(feature for feature in FEATURES if seen[feature])
        try:
            brute = Brute(resolve_affinity(problem))
            best = brute.value()
        except TooManyWaysError:
            continue
        tiers = zip(brute.tiers(), best, strict=True)
        known = tuple(v for t, v in tiers if t is Tier.GANGS)
        assert reached <= known, f"seed {seed}"
        SEEN["best" if reached == known else "less"] += 1


@pytest.mark.parametrize("seed", range(LARGE))
def test_larger_batches_are_valid(seed: int) -> None:
    """So does the judge say of dozens of nodes."""
    problem, _ = draw_everything(seed, MIDDLE)
    assert any(weights_of(pipeline.allocate(problem)))


def test_what_is_tiny_is_mostly_best() -> None:
    """The answers above are no empty ones."""
    assert SEEN["best"] > 4 * SEEN["less"], SEEN
    assert not {name for name in FEATURES if not SEEN[name]}, SEEN
