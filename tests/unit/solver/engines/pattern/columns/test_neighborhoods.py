"""Parts of an answer: small ones first, larger ones when these lead nowhere."""

from __future__ import annotations

import pytest

from solver.engines.pattern.columns import neighborhoods
from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.local_search import Neighborhood, PartialSolution
from solver.engines.pattern.columns.neighborhoods import (
    MAX_NEIGHBORHOODS,
    MAX_SCALE,
    PATIENCE,
    WORK,
    PooledNeighborhoods,
)
from solver.engines.pattern.columns.pricing import Pattern

CLASSES, GANG_KINDS = 12, 30
COMPLETE = PartialSolution(Solution((), ()))
"""An answer with places for all."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighborhoods, "PATTERNS", 10)
    monkeypatch.setattr(neighborhoods, "GANG_KINDS", 8)


def pool() -> ColumnPool:
    """Make a pool of 12 classes with 5 patterns each."""
    made = ColumnPool()
    for owner in range(CLASSES):
        made.add_uses((owner, Pattern((step,), ((0, 1),)), 1) for step in range(5))
    return made


def first(
    count: int, made: PooledNeighborhoods, *, is_better: bool
) -> list[Neighborhood]:
    """Take the next ones, and say the same of each."""
    found: list[Neighborhood] = []
    while len(found) < count:
        neighborhood = made.propose(COMPLETE)
        if neighborhood is None:
            break
        found.append(neighborhood)
        made.report(COMPLETE, is_better=is_better, spent=1.0)
    return found


def test_what_was_split_comes_first() -> None:
    """Whole classes, and its gangs, however many."""
    gangs = tuple(range(10))
    made = PooledNeighborhoods(pool(), GANG_KINDS, (3, 7), gangs)
    (one,) = first(1, made, is_better=True)
    assert {3, 7} <= set(one.patterns_by_class)
    assert one.gangs == set(gangs)
    assert all(len(patterns) == 5 for patterns in one.patterns_by_class.values())


def test_every_class_has_its_turn() -> None:
    """Each once in a round, about as many patterns at a time as was said."""
    found = first(6, PooledNeighborhoods(pool(), GANG_KINDS, ()), is_better=True)
    assert sum(len(part.patterns_by_class) for part in found) == CLASSES
    assert set().union(*(part.patterns_by_class for part in found)) == set(
        range(CLASSES)
    )
    assert all(len(part.gangs) == 8 for part in found)


def test_parts_grow_when_nothing_gets_better() -> None:
    """Twice as large each time, with as much more work, up to a limit."""
    found = first(
        MAX_NEIGHBORHOODS + 9, PooledNeighborhoods(pool(), 99, ()), is_better=False
    )
    assert len(found) == MAX_NEIGHBORHOODS
    assert found[PATIENCE - 1].work == pytest.approx(WORK)
    assert found[PATIENCE].work == pytest.approx(2 * WORK)
    assert len(found[PATIENCE].gangs) == 16
    assert len(found[PATIENCE].patterns_by_class) == 4
    assert found[-1].work == pytest.approx(MAX_SCALE * WORK)


def test_wanted_gangs_are_half_of_the_next_part() -> None:
    """The others come by chance."""
    made = PooledNeighborhoods(pool(), GANG_KINDS, ())
    first(1, made, is_better=False)
    short = PartialSolution(Solution((), ()), short_gangs=(1, 2, 3, 4))
    part = made.propose(short)
    assert part is not None
    assert {1, 2, 3, 4} <= part.gangs


def test_the_same_reports_lead_to_the_same_parts() -> None:
    """Nothing is left to real chance."""
    runs = [
        first(20, PooledNeighborhoods(pool(), GANG_KINDS, (5,)), is_better=False)
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_an_empty_pool_has_gangs_alone() -> None:
    """Patterns may all be fixed."""
    (one,) = first(1, PooledNeighborhoods(ColumnPool(), 3, ()), is_better=True)
    assert not one.patterns_by_class
    assert one.gangs == frozenset({0, 1, 2})


def test_large_classes_show_a_part_of_their_patterns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The most promising always, of the others now these and now those."""
    monkeypatch.setattr(neighborhoods, "CLASS_PATTERNS", 2)
    parts = first(30, PooledNeighborhoods(pool(), 3, ()), is_better=True)
    shown = [part.patterns_by_class[0] for part in parts if 0 in part.patterns_by_class]
    assert all(len(patterns) == 2 for patterns in shown)
    assert all(Pattern((0,), ((0, 1),)) in patterns for patterns in shown)
    assert len(set().union(*shown)) > 2


def test_a_neighborhood_of_all_there_is_says_so() -> None:
    """What it proves is proven for the pool."""
    few = ColumnPool()
    few.add_uses([(0, Pattern((1,), ((0, 1),)), 1)])
    (whole,) = first(1, PooledNeighborhoods(few, 3, ()), is_better=True)
    assert whole.is_whole
    (part,) = first(1, PooledNeighborhoods(few, 9, ()), is_better=True)
    assert not part.is_whole
    (part,) = first(1, PooledNeighborhoods(pool(), 3, ()), is_better=True)
    assert not part.is_whole
