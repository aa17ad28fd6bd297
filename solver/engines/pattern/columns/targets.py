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
from solver.engines.pattern.columns.diving import dive
from solver.engines.pattern.columns.improvement import improve_by_parts
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import IntegerMaster, Solution
from solver.engines.pattern.columns.master import SCALE, Master, count_pods
from solver.engines.pattern.columns.objective import Objective
from solver.engines.pattern.columns.rounding import RelaxedSolution, solve_relaxation
from solver.engines.pattern.columns.shortage import Start, seek_worth

MAX_TARGETS, MAX_CUT_OFF = 24, 40
"""Targets for which places are looked for, and those that are cut off before."""
CUT_MASTER_WORK = 0.5
"""Work that choosing a target may take."""
TAKE_OUT_WORK = 0.5
"""Work that taking gangs out may take."""
STEPS_WORK, STEPS_SCALE = 2.5, 2
"""Work that steps to better gangs may take, and the scale of their neighborhoods."""
FIRST_WORK, PLACE_WORK = 0.3, 1.5
"""Work that finding places may take: at first, and with patterns for the target."""


class TargetSearch:
    """Aims at the bound of an objective that counts gangs alone; call `run` once."""

    def __init__(self, source: ColumnSource, incumbent: Incumbent) -> None:
        """`incumbent`: has a bound from prices; gets answers and a better bound."""
        self._source = source
        self._incumbent = incumbent
        self._data = source.model.data
        self._devices = source.model.devices
        self._cut_off = 0
        """Targets that were cut off."""

    def run(self, relaxed: RelaxedSolution) -> None:
        """Try targets until one is reached that nothing exceeds.

        Targets that are given up leave a gap between value and bound. `relaxed`: the
        answer for fractions of all gangs.
        """
        incumbent = self._incumbent
        self._try_at_once(relaxed)
        most, failed = incumbent.bound, incumbent.bound + 1
        for number in range(MAX_TARGETS):
            # Where the first targets fail, steps from answer to answer come near
            # before others do.
            if number == 1:
                self._take_steps(relaxed)
            chosen = self._choose_fitting_target(most)
            if chosen is None:
                return
            target, start = chosen
            shortage = self._place(target.value, start, PLACE_WORK)
            if shortage:
                # Aim lower by what was missing, but skip no more than half.
                failed = target.value
                most = failed - max(1, min(shortage, (failed - incumbent.value) // 2))
            else:
                most = min(incumbent.bound, (incumbent.value + failed) // 2)

    def _try_at_once(self, relaxed: RelaxedSolution) -> None:
        """Try a first target from the relaxed answer, if that is worth as much."""
        bound = self._incumbent.bound
        target = self._choose_target(bound)
        if target is not None and target.value == bound:
            solution = Solution(tuple(map(round, relaxed.gangs)), relaxed.uses)
            start = Start(solution, relaxed.split, relaxed.split_gangs)
            self._place(bound, start, FIRST_WORK)

    def _take_steps(self, relaxed: RelaxedSolution) -> None:
        source, incumbent = self._source, self._incumbent
        improve_by_parts(source, incumbent, relaxed.split, STEPS_WORK, STEPS_SCALE)

    def _choose_fitting_target(self, most: int) -> tuple[CutMasterResult, Start] | None:
        """Choose a target of whose pods fractions fit, and where to begin with it.

        Others are cut off; after many cuts the last one is taken as it is.
        """
        while True:
            target = self._choose_target(min(most, self._incumbent.bound))
            if target is None:
                return None
            relaxed, fits = self._relax(target.gangs)
            if fits or self._cut_off == MAX_CUT_OFF:
                return target, self._dive(target.gangs, relaxed)
            self._cut_off += 1

    def _dive(self, gangs: Sequence[int], relaxed: RelaxedSolution) -> Start:
        """Begin with a whole answer that comes near to places for all pods."""
        source = self._source
        pods = count_pods(self._data, gangs)
        uses = dive(source.model, source.pool, pods, relaxed)
        source.pool.add_uses(uses)
        return Start(Solution(tuple(gangs), uses), relaxed.split)

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

    def _relax(self, gangs: Sequence[int]) -> tuple[RelaxedSolution, bool]:
        """Fit fractions of the pods of these gangs, and say whether all of them fit.

        Brings patterns that are made for these pods, or cuts that rule the gangs out.
        """
        pods = count_pods(self._data, gangs)
        single_pods = split_into_pods(self._data, pods, self._devices)
        objective = Objective(self._devices)
        master = Master(single_pods, objective, ())
        first_prices = [devices * SCALE for devices in self._devices]
        result = self._source.run(master, first_prices)
        pool = ColumnPool()
        pool.add_result(result)
        patterns_by_class = pool.list_promising()
        relaxed = solve_relaxation(single_pods, patterns_by_class, objective, ())
        pairs = zip(self._devices, pods, strict=True)
        fits = result.bound >= sum(devices * count for devices, count in pairs)
        return relaxed or RelaxedSolution((), (), ()), fits

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
