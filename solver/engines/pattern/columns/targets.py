"""Targets: the best whole gangs that the cuts allow, and places for all their pods.

Who is in is chosen first, by gangs alone; then places are looked for, for gangs of just
this worth. Where nodes cannot take even fractions of their pods, prices say so by a new
cut (Benders decomposition); where no places are found, the next target is lower.
"""

from __future__ import annotations

from collections.abc import Sequence

from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.cuts import (
    CutMasterGoal,
    CutMasterResult,
    solve_cut_master,
    split_into_pods,
)
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import IntegerMaster, Solution
from solver.engines.pattern.columns.master import SCALE, Master, count_pods
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.rounding import RelaxedSolution, solve_relaxation
from solver.engines.pattern.columns.shortage import (
    PartialSolution,
    ShortageSearch,
    Start,
)

MAX_TARGETS = 24
CUT_MASTER_WORK = 0.5
"""Work that choosing a target may take."""
TAKE_OUT_WORK = 0.5
"""Work that taking gangs out may take."""
FIRST_WORK, PLACE_WORK = 0.75, 2.0
"""Work that finding places may take: at first, and with patterns for the target."""


class TargetSearch:
    """Aims at the bound of an objective that counts gangs alone; call `run` once."""

    def __init__(self, source: ColumnSource, incumbent: Incumbent) -> None:
        """`incumbent`: has a bound from prices; gets answers and a better bound."""
        self._source = source
        self._incumbent = incumbent
        self._data = source.model.data
        self._devices = source.model.devices

    def run(self, relaxed: RelaxedSolution) -> None:
        """Try targets until one is reached that nothing exceeds.

        Targets that are given up leave a gap between value and bound. `relaxed`: the
        answer for fractions of all gangs.
        """
        incumbent, priced_bound = self._incumbent, self._incumbent.bound
        # What a target may be worth, and what could not be reached so far.
        most, failed = incumbent.bound, incumbent.bound + 1
        for number in range(MAX_TARGETS):
            target = self._choose_target(most)
            if target is None:
                return
            most = min(most, incumbent.bound)
            shortage: int | None = None
            # The relaxed answer is worth the bound of its prices: a good start for a
            # target that is worth as much.
            if not number and target.value == priced_bound:
                gangs = tuple(map(round, relaxed.gangs))
                start = Start(
                    Solution(gangs, relaxed.uses), relaxed.split, relaxed.split_gangs
                )
                shortage = self._place(target.value, start, FIRST_WORK)
            if shortage != 0:
                shortage = self._place_exactly(target)
            if shortage is None:
                continue
            if shortage:
                # Aim lower by what was missing, but skip no more than half.
                failed = target.value
                most = failed - max(1, min(shortage, (failed - incumbent.value) // 2))
            else:
                most = min(incumbent.bound, (incumbent.value + failed) // 2)

    def _choose_target(self, most: int) -> CutMasterResult | None:
        """Choose the best gangs within all cuts; None: no better ones are to be had.

        As long as no target was given up, their worth is a bound.
        """
        incumbent, budget = self._incumbent, self._source.budget
        if most <= incumbent.value or budget.remaining <= 0:
            return None
        target = solve_cut_master(
            self._data,
            self._source.cuts,
            CutMasterGoal(incumbent.objective, incumbent.floors, most),
            budget,
            CUT_MASTER_WORK,
        )
        if most == incumbent.bound:
            incumbent.bound = max(incumbent.value, target.bound)
        is_better = bool(target.gangs) and target.value > incumbent.value
        return target if is_better else None

    def _place_exactly(self, target: CutMasterResult) -> int | None:
        """Look for places with patterns that are made for the pods of these gangs.

        Returns the shortage; None: not even fractions of the pods fit, which is a cut.
        """
        relaxed = self._relax(target.gangs)
        if relaxed is None:
            return None
        start = Start(Solution(target.gangs, relaxed.uses), relaxed.split)
        return self._place(target.value, start, PLACE_WORK)

    def _relax(self, gangs: Sequence[int]) -> RelaxedSolution | None:
        """Fit fractions of the pods of these gangs; None: they do not all fit."""
        pods = count_pods(self._data, gangs)
        single_pods = split_into_pods(self._data, pods, self._devices)
        objective = Objective(self._devices)
        master = Master(single_pods, objective, ())
        first_prices = [devices * SCALE for devices in self._devices]
        result = self._source.run(master, first_prices)
        pairs = zip(self._devices, pods, strict=True)
        if result.bound < sum(devices * count for devices, count in pairs):
            return None
        pool = ColumnPool()
        pool.add_result(result)
        patterns_by_class = pool.list_promising()
        relaxed = solve_relaxation(single_pods, patterns_by_class, objective, ())
        return relaxed or RelaxedSolution((), (), ())

    def _place(self, worth: int, start: Start, work: float) -> int:
        """Look for places for gangs of so much worth; returns the shortage.

        Where one is left, gangs are taken out until the rest have places.
        """
        incumbent, budget = self._incumbent, self._source.budget
        partial = seek_worth(self._source, incumbent, worth, start, work)
        if partial.shortage:
            master = IntegerMaster(self._data, {}, partial.solution)
            master.add_floors(incumbent.floors)
            result = master.solve(
                incumbent.objective, incumbent.bound, budget, TAKE_OUT_WORK
            )
            if result.solution is not None:
                incumbent.offer(result.solution)
        return partial.shortage


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
