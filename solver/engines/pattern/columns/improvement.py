"""Better answers part by part; and later goals, which aim at their bound first."""

from __future__ import annotations

from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import IntegerMaster, Solution
from solver.engines.pattern.columns.neighborhoods import Neighborhoods
from solver.engines.pattern.columns.rounding import RelaxedSolution
from solver.engines.pattern.columns.shortage import Start, seek_worth

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
    """Decide one neighborhood after the other anew, while there is work to spend.

    An answer that is only as good is taken, too: the next part may gain by it.
    """
    data, budget, current = source.model.data, source.budget, incumbent.best
    reserve = max(0.0, budget.remaining - work)
    kinds = len(data.gangs)
    neighborhoods = Neighborhoods(source.pool, kinds, first_classes)
    for neighborhood in neighborhoods:
        limit = min(neighborhood.work, budget.remaining - reserve)
        if incumbent.is_proven or limit <= 0:
            return
        master = IntegerMaster(
            data,
            neighborhood.patterns_by_class,
            current,
            free_gangs=neighborhood.gangs,
        )
        master.add_floors(incumbent.floors)
        result = master.solve(incumbent.objective, incumbent.bound, budget, limit)
        if result.solution is not None and result.value >= incumbent.value:
            current = result.solution
        is_better = result.solution is not None and incumbent.offer(result.solution)
        if neighborhood.is_whole and result.bound <= incumbent.value:
            return
        neighborhoods.report(is_better=is_better)
