"""Gangs change places in two searches side by side, which differ in their order alone.

Which neighborhoods come first decides how long a search takes, and where it is stuck.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from solver.engines.goals import Effort
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.master import MasterResult
from solver.engines.pattern.columns.priced_search import PricedSearch
from solver.portfolio import Search, race
from solver.stages import stage

SEARCHES = 2
"""As many as there are processors where little is said of the machine."""


class Report(Struct, frozen=True):
    """How far a search is."""

    best: Solution | None
    is_proven: bool
    effort: Effort
    """Since it began."""


def exchange(
    source: ColumnSource,
    incumbent: Incumbent,
    priced: MasterResult,
    solution: Solution,
    work: float,
) -> None:
    """Let gangs change places, from an answer that may be short of places.

    `incumbent`: gets the best answer; all its objectives must be of gangs only.
    `work`: of each search.
    """
    if source.budget.remaining <= 0:
        return

    def begin(order: int) -> Search[Report]:
        def search() -> Iterator[Report]:
            budget, own = source.budget.share(work), incumbent.copy()
            priced_search = PricedSearch(source, budget, own, priced, order)
            for _ in priced_search.rounds(solution):
                yield Report(own.best, own.is_proven, budget.to_effort())

        return search

    searches = [begin(order) for order in range(SEARCHES)]
    with stage("solve"):  # also while it waits for a copy
        raced = race(searches, lambda told: told.is_proven)
    told = [reports[-1:] for reports in raced]
    last = [report for reports in told for report in reports]
    for report in last:
        if report.best is not None:
            incumbent.offer(report.best)
    source.budget.join([report.effort for report in last])
