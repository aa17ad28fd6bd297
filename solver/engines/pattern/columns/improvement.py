"""Better answers part by part: places for a worth of gangs, and later goals."""

from __future__ import annotations

from collections.abc import Sequence

from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.local_search import (
    NeighborhoodSearch,
    PartialSolution,
)
from solver.engines.pattern.columns.neighborhoods import PooledNeighborhoods
from solver.engines.pattern.columns.rounding import RelaxedSolution

LATER_WORK = 0.5
"""Work that one later goal may take."""
BOUND_WORK = 0.2
"""How much of it goes into reaching the bound at once."""


def improve(
    source: ColumnSource, incumbent: Incumbent, relaxed: RelaxedSolution
) -> None:
    """Make an answer better; `relaxed`: one with fractions, as good as the bound."""
    if incumbent.best is None or incumbent.is_proven:
        return
    until = max(0.0, source.budget.remaining - LATER_WORK)
    start = Solution(incumbent.best.gangs, relaxed.uses)
    worth = incumbent.bound
    seek_worth(source, incumbent, start, relaxed.split, worth=worth, work=BOUND_WORK)
    search = NeighborhoodSearch(source.model.data, incumbent)
    work = source.budget.remaining - until
    _run(source, search, incumbent.best, relaxed.split, work)


def seek_worth(
    source: ColumnSource,
    incumbent: Incumbent,
    start: Solution,
    first_classes: Sequence[int],
    *,
    worth: int,
    work: float,
) -> PartialSolution:
    """Look for an answer that is worth so much, by ever fewer devices of pods without.

    `start`: may be short of places; `first_classes`: what is decided anew first. An
    answer is offered if nothing is short.
    """
    costs = source.model.devices
    search = NeighborhoodSearch(source.model.data, incumbent, costs=costs, worth=worth)
    return _run(source, search, start, first_classes, work)


def _run(
    source: ColumnSource,
    search: NeighborhoodSearch,
    start: Solution,
    first_classes: Sequence[int],
    work: float,
) -> PartialSolution:
    kinds, budget = len(source.model.data.gangs), source.budget
    neighborhoods = PooledNeighborhoods(source.pool, kinds, first_classes)
    until = max(0.0, budget.remaining - work)
    return search.run(start, neighborhoods, budget, until)
