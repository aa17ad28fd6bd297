"""Patterns worth a try: the most promising first."""

from __future__ import annotations

import pytest

from solver.engines.pattern.columns import column_pool
from solver.engines.pattern.columns.column_pool import (
    LEAST_ADDED,
    LEAST_RELAXED,
    MOST_RELAXED,
    ColumnPool,
)
from solver.engines.pattern.columns.master import MasterColumn, MasterResult
from solver.engines.pattern.columns.pricing import EMPTY, Pattern, Prices


def pattern(step: int) -> Pattern:
    """Make a pattern of one pod."""
    return Pattern((step,), ((0, 1),))


def pool_of(**sizes: int) -> ColumnPool:
    """Make a pool with so many patterns of class 0, 1, ..."""
    pool = ColumnPool()
    for owner, size in enumerate(sizes.values()):
        pool.add_uses((owner, pattern(step), 1) for step in range(size))
    return pool


def test_what_the_program_uses_comes_first_by_its_share() -> None:
    """Then what was nearly as good; a node without pods is no pattern to choose."""
    result = MasterResult(
        bound=0,
        columns=(
            MasterColumn(((0, pattern(1), 2),), 0.2),
            MasterColumn(((0, pattern(2), 2),), 0.8),
        ),
        patterns=((pattern(3), EMPTY, pattern(2)),),
        cuts=(),
        prices=Prices(()),
        gains=(),
    )
    pool = ColumnPool()
    pool.add_result(result)
    assert pool.list_patterns(9) == {0: [pattern(2), pattern(1), pattern(3)]}
    assert pool.list_patterns(1) == {0: [pattern(2)]}


def test_a_run_adds_so_many_patterns_of_a_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many classes share what is added, but each has a few."""
    monkeypatch.setattr(column_pool, "ADDED", 2)
    many = tuple(map(pattern, range(2 * LEAST_ADDED)))
    pool = ColumnPool()
    pool.add_result(MasterResult(0, (), (many, many), (), Prices(()), ()))
    assert len(pool) == 2 * LEAST_ADDED


def test_many_classes_share_what_one_linear_program_mixes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But each has a few, and none very many."""
    pool = pool_of(a=40, b=40)
    for most, each in ((2, LEAST_RELAXED), (20, 10), (100, MOST_RELAXED)):
        monkeypatch.setattr(column_pool, "RELAXED", most)
        sizes = {
            owner: len(of_class) for owner, of_class in pool.list_promising().items()
        }
        assert sizes == {0: each, 1: each}


def test_all_patterns_are_listed_by_class() -> None:
    """The classes that have any are counted."""
    pool = pool_of(a=2, b=1)
    assert pool.list_patterns() == {0: [pattern(0), pattern(1)], 1: [pattern(0)]}
    assert (pool.classes, len(pool)) == (2, 3)


def test_the_most_promising_patterns_of_a_class_are_listed() -> None:
    """As many as are asked for; none of a class that has none."""
    pool = pool_of(a=3)
    assert pool.list_class(0, 2) == [pattern(0), pattern(1)]
    assert pool.list_class(1, 2) == []
