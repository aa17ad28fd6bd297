"""Two ways to the same answer: the direct model and the pattern engine.

They share the kinds and nothing else. Whatever batch the pattern engine is made for,
both reach the same value of every goal and prove it; on larger ones, where either may
stop early, what they find and what they prove never contradict each other.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Status, TierValue
from solver.engines.choose import PATTERN, choose_engine
from solver.engines.pattern.search import PatternSearch
from solver.engines.solve import answer
from solver.engines.tier_values import tier_values_of
from solver.errors import TooManyPlacementsError
from solver.kinds.demand import Demand
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeKind
from solver.problem.problem import Problem
from solver.tiers import Tier
from tests.draw.crowds import crowd
from tests.draw.drawn import drawn
from tests.lab.soak import SOAK

PROBLEMS, CROWDS = (20_000, 200) if SOAK else (200, 1)
AT_ONCE = 50
FIRST = (Tier.GANGS, Tier.ALTERNATIVES)
SEEN: Counter[str] = Counter()
Span = tuple[int, int]
"""What was reached and what was not ruled out; of ranks negative."""


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as made:
        yield made


def drawn_for_patterns(seed: int, evaluator: SelectorEvaluator) -> Problem | None:
    """Draw a batch for 2 to 12 nodes; None: it is none for the pattern engine."""
    draw = random.Random(seed)
    nodes, gangs = draw.randint(2, 12), draw.choice((3, 6, 12))
    problem, _ = drawn(seed, evaluator, nodes=nodes, gangs=gangs)
    demand, kinds = laid_out(problem)
    if not demand.gangs or choose_engine(demand, kinds).engine != PATTERN:
        return None
    return problem


def laid_out(problem: Problem) -> tuple[Demand, tuple[NodeKind, ...]]:
    demand = Demand(problem.gangs, expected=problem.expected)
    return demand, find_node_kinds(problem, demand.query)


def goals(tiers: tuple[TierValue, ...]) -> list[TierValue]:
    """Leave out what is only reported."""
    return [tier for tier in tiers if tier.tier in FIRST]


def spans(tiers: tuple[TierValue, ...]) -> list[Span]:
    """Say between what the best value of the first goals lies, as far as proven."""
    listed = []
    for tier in goals(tiers):
        sign = 1 if tier.tier is Tier.GANGS else -1
        if tier.bound is None:
            break
        listed.append((sign * tier.value, sign * tier.bound))
        if tier.bound != tier.value:
            break
    return listed


@pytest.mark.parametrize("first", range(0, PROBLEMS, AT_ONCE))
def test_both_engines_prove_the_same_value(
    first: int, evaluator: SelectorEvaluator
) -> None:
    """Value and bound of every goal are equal, and proven.

    Where patterns alone are not proven best, both together are.
    """
    for seed in range(first, first + AT_ONCE):
        problem = drawn_for_patterns(seed, evaluator)
        if problem is None:
            SEEN["skipped"] += 1
            continue
        try:
            found = answer(problem, PATTERN)
        except TooManyPlacementsError:
            SEEN["refused"] += 1
            continue
        direct = answer(problem, "direct")
        assert direct.status is Status.OPTIMAL, f"seed {seed}"
        SEEN.update(["compared", "placed" if found.placements else "none"])
        if found.status is Status.OPTIMAL:
            assert goals(found.tiers) == goals(direct.tiers), f"seed {seed}"
            continue
        SEEN["not proven"] += 1
        for mine, best in zip(spans(found.tiers), spans(direct.tiers), strict=False):
            assert mine[0] <= best[0] <= mine[1], f"seed {seed}"
        assert goals(answer(problem).tiers) == goals(direct.tiers), f"seed {seed}"


def test_most_were_compared() -> None:
    """The law above is about most problems that are drawn, and about yes and no."""
    assert SEEN["compared"] >= PROBLEMS // 2, SEEN
    assert SEEN["not proven"] <= PROBLEMS // 100, SEEN
    assert SEEN["refused"] <= PROBLEMS // 100, SEEN
    assert min(SEEN["placed"], SEEN["none"]) >= SEEN["compared"] // 10, SEEN


@pytest.mark.parametrize("seed", range(CROWDS))
def test_larger_answers_never_contradict_each_other(seed: int) -> None:
    """The judge agrees with the pattern engine, and no bound is below a found value."""
    problem = crowd(seed)
    assert allocate(problem).statistics.engine == PATTERN
    found, direct = (
        spans(answer(problem, engine).tiers) for engine in (PATTERN, "direct")
    )
    assert all(value <= bound for value, bound in (*found, *direct))
    for mine, other in zip(found, direct, strict=False):
        assert mine[0] <= other[1]
        assert other[0] <= mine[1]


@pytest.mark.parametrize("coarser", [1, 3])
@pytest.mark.parametrize("first", range(0, PROBLEMS // 4, AT_ONCE))
def test_prices_never_contradict_lists(
    first: int, coarser: int, evaluator: SelectorEvaluator
) -> None:
    """What prices find is at most what lists do, and what they prove at least that.

    Also where node resources are counted more coarsely than pods ask for them.
    """
    for seed in range(first, first + AT_ONCE):
        problem = drawn_for_patterns(seed, evaluator)
        if problem is None:
            continue
        demand, kinds = laid_out(problem)
        parameters = problem.parameters
        try:
            listed = PatternSearch(demand, kinds, parameters).run()
        except TooManyPlacementsError:
            continue
        priced = PatternSearch(
            demand, kinds, parameters, list_limit=-1, coarseness=coarser
        ).run()
        both = [
            tier_values_of(demand, demand, kinds, found, parameters.last_tier)
            for found in (priced, listed)
        ]
        for mine, other in zip(*map(spans, both), strict=False):
            assert mine[0] <= other[1], f"seed {seed}"
            assert other[0] <= mine[1], f"seed {seed}"
            SEEN["closed" if mine == other else "open"] += 1


def test_prices_often_close_the_gap() -> None:
    """The law above is no empty one: most values that lists prove, prices reach."""
    assert SEEN["closed"] > SEEN["open"], SEEN
