"""Patterns that another one contains say nothing of how many pods fit."""

from __future__ import annotations

import pytest

from solver.engines.pattern.columns import enumeration
from solver.engines.pattern.columns.enumeration import keep_maximal
from solver.engines.pattern.columns.pricing import Pattern


def pattern(*counts: int) -> Pattern:
    """Make a pattern of so many pods by member kind."""
    pods = tuple((kind, count) for kind, count in enumerate(counts) if count)
    return Pattern(tuple(range(sum(counts))), pods)


def test_only_patterns_that_no_other_contains_are_kept() -> None:
    """In the order in which they came."""
    patterns = [pattern(1, 0), pattern(0, 2), pattern(2, 1), pattern(2, 0)]
    assert keep_maximal(patterns) == [pattern(0, 2), pattern(2, 1)]


def test_of_equal_patterns_one_is_kept() -> None:
    """Two ways to place the same pods are one for what counts pods."""
    assert keep_maximal([pattern(1), pattern(1)]) == [pattern(1)]


def test_too_many_patterns_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks goes on with all of them."""
    monkeypatch.setattr(enumeration, "MAX_COMPARED", 2)
    assert keep_maximal([pattern(1, 0, 0), pattern(0, 1, 0), pattern(0, 0, 1)]) is None
