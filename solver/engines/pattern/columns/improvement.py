"""Better answers part by part: places for a worth of gangs, and later goals."""

from __future__ import annotations

from msgspec import Struct

from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import IntegerMaster, Solution
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
TAKE_OUT_WORK = 0.5
"""Work that taking gangs out may take."""


class Start(Struct, frozen=True):
    """Where a search for places begins."""

    solution: Solution
    """May be short of places."""
    classes: tuple[int, ...] = ()
    """Classes that are decided anew first."""
    gangs: tuple[int, ...] = ()
    """Gang kinds that are decided anew first."""


def improve(
    source: ColumnSource, incumbent: Incumbent, relaxed: RelaxedSolution
) -> None:
    """Make an answer better; `relaxed`: one with fractions, as good as the bound."""
    if incumbent.best is None or incumbent.is_proven:
        return
    until = max(0.0, source.budget.remaining - LATER_WORK)
    start = Start(Solution(incumbent.best.gangs, relaxed.uses), relaxed.split)
    seek_worth(source, incumbent, incumbent.bound, start, BOUND_WORK)
    work = source.budget.remaining - until
    improve_by_parts(source, incumbent, relaxed.split, work)


def improve_by_parts(
    source: ColumnSource,
    incumbent: Incumbent,
    first_classes: tuple[int, ...],
    work: float,
) -> None:
    """Make the best answer better, with so much work; no pod lacks a place."""
    if incumbent.best is not None:
        search = NeighborhoodSearch(source.model.data, incumbent)
        _run(source, search, Start(incumbent.best, first_classes), work)


def seek_worth(
    source: ColumnSource, incumbent: Incumbent, worth: int, start: Start, work: float
) -> PartialSolution:
    """Look for an answer that is worth so much, by ever fewer devices of pods without.

    It is offered if nothing is short.
    """
    costs = source.model.devices
    search = NeighborhoodSearch(source.model.data, incumbent, costs=costs, worth=worth)
    return _run(source, search, start, work)


def _run(
    source: ColumnSource, search: NeighborhoodSearch, start: Start, work: float
) -> PartialSolution:
    kinds, budget = len(source.model.data.gangs), source.budget
    neighborhoods = PooledNeighborhoods(source.pool, kinds, start.classes, start.gangs)
    until = max(0.0, budget.remaining - work)
    return search.run(start.solution, neighborhoods, budget, until)


def offer_placed(
    source: ColumnSource, incumbent: Incumbent, solution: Solution
) -> None:
    """Offer the best gangs that all have places in an answer that may be short."""
    master = IntegerMaster(source.model.data, {}, solution)
    master.add_floors(incumbent.floors)
    result = master.solve(
        incumbent.objective, incumbent.bound, source.budget, TAKE_OUT_WORK
    )
    if result.solution is not None:
        incumbent.offer(result.solution)
