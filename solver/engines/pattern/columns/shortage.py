"""Places for a worth of gangs: pods may lack one, but ever fewer of them do.

An answer that misses a place for one pod is worth a whole gang less, so going from
answer to answer in small steps leads nowhere. Here the worth is kept from the start,
and the shortage is what is made less: the devices of the pods that have no place yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.incumbent import Incumbent, keeps_floors
from solver.engines.pattern.columns.integer_master import (
    IntegerMaster,
    Solution,
    count_short,
)
from solver.engines.pattern.columns.master_data import MasterData
from solver.engines.pattern.columns.neighborhoods import Neighborhood, Neighborhoods
from solver.engines.pattern.columns.objective import Floor

TAKE_OUT_WORK = 0.5
"""Work that taking gangs out may take."""
BELOW_FLOORS = 1 << 60
"""The shortage of an answer that is worth too little."""


class PartialSolution(Struct, frozen=True):
    """A solution but for some pods that have no place."""

    solution: Solution
    shortage: int
    """Devices of the pods without a place."""
    short_gangs: tuple[int, ...] = ()
    """Gang kinds with pods of those kinds."""


class Start(Struct, frozen=True):
    """Where a search for places begins."""

    solution: Solution
    """May be short of places."""
    classes: tuple[int, ...] = ()
    """Classes that are decided anew first."""
    gangs: tuple[int, ...] = ()
    """Gang kinds that are decided anew first."""


class ShortageSearch:
    """Looks for places for gangs that are worth what all floors say."""

    def __init__(
        self, data: MasterData, devices: Sequence[int], floors: Sequence[Floor]
    ) -> None:
        """`devices`: of a pod, by member kind."""
        self._data = data
        self._devices = tuple(devices)
        self._floors = tuple(floors)

    def run(
        self, start: Start, pool: ColumnPool, budget: Budget, work: float
    ) -> PartialSolution:
        """Make the shortage less, with so much work, by the patterns of a pool."""
        reserve = max(0.0, budget.remaining - work)
        best = self.measure(start.solution)
        kinds = len(self._data.gangs)
        neighborhoods = Neighborhoods(pool, kinds, start.classes, start.gangs)
        for neighborhood in neighborhoods:
            limit = min(neighborhood.work, budget.remaining - reserve)
            if not best.shortage or limit <= 0:
                break
            found, is_proven = self._improve(best, neighborhood, budget, limit)
            if neighborhood.is_whole and is_proven:
                return found
            is_better = found.shortage < best.shortage
            neighborhoods.report(is_better=is_better, wanted=found.short_gangs)
            best = found
        return best

    def measure(self, solution: Solution) -> PartialSolution:
        """Measure what a solution is short of."""
        short = count_short(self._data, solution)
        pairs = zip(self._devices, short, strict=True)
        shortage = sum(devices * pods for devices, pods in pairs)
        if not keeps_floors(solution, self._floors):
            shortage = BELOW_FLOORS
        short_gangs = tuple(
            g
            for g, kind in enumerate(self._data.gangs)
            if any(short[member] > 0 for member, _ in kind.members)
        )
        return PartialSolution(solution, shortage, short_gangs)

    def _improve(
        self,
        best: PartialSolution,
        neighborhood: Neighborhood,
        budget: Budget,
        limit: float,
    ) -> tuple[PartialSolution, bool]:
        """Decide a neighborhood anew; another answer that is as short is taken, too.

        Says as well whether nothing in the neighborhood is less short.
        """
        master = IntegerMaster(
            self._data,
            neighborhood.patterns_by_class,
            best.solution,
            free_gangs=neighborhood.gangs,
            shortage_costs=self._devices,
        )
        master.add_floors(self._floors)
        result = master.minimize_shortage(budget, limit)
        if result.solution is None:
            return best, False
        found = self.measure(result.solution)
        is_proven = found.shortage == -result.bound
        return (found if found.shortage <= best.shortage else best), is_proven


def seek_worth(
    source: ColumnSource, incumbent: Incumbent, worth: int, start: Start, work: float
) -> PartialSolution:
    """Look for an answer that is worth so much, and offer it if nothing is short."""
    floors = (*incumbent.floors, Floor(incumbent.objective, worth))
    search = ShortageSearch(source.model.data, source.model.devices, floors)
    partial = search.run(start, source.pool, source.budget, work)
    if not partial.shortage:
        incumbent.offer(partial.solution)
    return partial


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
