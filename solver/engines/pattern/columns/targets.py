"""Targets: the best whole gangs that the cuts allow, and places for all their pods.

Who is in is chosen first, by gangs alone; then places are looked for, for gangs of just
this worth. Where nodes cannot take even fractions of their pods, prices say so by a new
cut (Benders decomposition); where no places are found, the next target is lower.
"""

from __future__ import annotations

from collections.abc import Sequence

from solver.engines.pattern.columns.branching import GangBranching
from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.cuts import (
    CutMaster,
    CutMasterGoal,
    CutMasterResult,
)
from solver.engines.pattern.columns.diving import dive
from solver.engines.pattern.columns.improvement import (
    Start,
    improve_by_parts,
    offer_placed,
    seek_worth,
)
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.local_search import BELOW_FLOORS, PartialSolution
from solver.engines.pattern.columns.master import Master, MasterResult
from solver.engines.pattern.columns.master_data import (
    SCALE,
    MasterData,
    count_pods,
    split_into_pods,
)
from solver.engines.pattern.columns.objective import Objective
from solver.engines.pattern.columns.priced_search import PricedSearch
from solver.engines.pattern.columns.rounding import RelaxedSolution, solve_relaxation

MAX_TARGETS, MAX_CUT_OFF = 3, 40
"""Targets for which places are looked for, and those that are cut off before."""
CUT_OFF_STEPS = 30_000_000
"""Of the latter, one after the other that do not lower the bound: as many as there are
steps for."""
BRANCHING_PATTERNS = 20
"""Patterns of each class that branching begins with."""
CUT_MASTER_WORK = 0.75
"""Work that choosing a target may take."""
EXCHANGE_WORK = 4.5
"""Work that gangs that change places may take."""
STEPS_WORK = 0.75
"""Work that steps to better gangs may take, last."""
FIRST_WORK, PLACE_WORK = 0.25, 0.5
"""Work that finding places may take: at first, and with patterns for the target."""


class TargetSearch:
    """Aims at the bound of an objective that counts gangs alone; call `run` once."""

    def __init__(
        self, source: ColumnSource, incumbent: Incumbent, priced: MasterResult
    ) -> None:
        """`incumbent`: has a bound from prices; gets answers and a better bound.

        `priced`: what led to that bound.
        """
        self._source = source
        self._incumbent = incumbent
        self._priced = priced
        self._data = source.model.data
        self._devices = source.model.devices
        self._cut_master = CutMaster(self._data, source.cuts)
        self._first_patterns = source.pool.list_patterns(BRANCHING_PATTERNS)
        """By class, before any target brought its own."""
        self._pod_master: Master | None = None
        """For the pods of one target after the other."""
        self._cut_off = self._idle = 0
        """Targets that were cut off; and since the bound was lowered last."""
        self._nearest: tuple[CutMasterResult, MasterData, MasterResult] | None = None
        """The target of whose pods the most fractions fit, since then."""
        self._was_taken = self._has_branched = False
        """True if a target was taken as it is, after many cuts; and whether branching
        looked for one."""

    def run(self, relaxed: RelaxedSolution) -> None:
        """Try targets until one is reached that nothing exceeds.

        Targets that are given up leave a gap between value and bound. `relaxed`: the
        answer for fractions of all gangs.
        """
        incumbent = self._incumbent
        self._aim(*self._try_at_once(relaxed))
        if incumbent.best is not None and not incumbent.is_proven:
            # Small steps find what is near to the best answer so far.
            improve_by_parts(self._source, incumbent, relaxed.split, STEPS_WORK)

    def _aim(self, nearest: Solution, least: int) -> None:
        """Try one target after the other; gangs change places after the first.

        `nearest`: an answer that may be short of places; `least`: its shortage.
        """
        incumbent = self._incumbent
        first_bound = incumbent.bound
        most, failed = incumbent.bound, incumbent.bound + 1
        for number in range(MAX_TARGETS):
            chosen = self._choose_fitting_target(most)
            shortage = 0
            if chosen is not None:
                partial = self._place(chosen[0].value, chosen[1], PLACE_WORK)
                shortage = partial.shortage
                # What is worth more than the bound by now is near to no answer.
                if shortage < least or incumbent.bound < first_bound:
                    nearest, least = partial.solution, shortage
            if not number and not incumbent.is_proven:
                # Gangs change places, from what is nearly an answer on.
                search = PricedSearch(self._source, incumbent, self._priced)
                search.run(nearest, EXCHANGE_WORK)
            if chosen is None:
                return
            if shortage:
                # Aim lower by what was missing, but skip no more than half.
                failed = chosen[0].value
                below = max(1, min(shortage, (failed - incumbent.value) // 2))
                most = failed - below
            else:
                most = min(incumbent.bound, (incumbent.value + failed) // 2)

    def _try_at_once(self, relaxed: RelaxedSolution) -> tuple[Solution, int]:
        """Try a first target from the relaxed answer, if that is worth as much.

        Returns an answer that may be short of places, and its shortage.
        """
        bound = self._incumbent.bound
        target = self._choose_target(bound)
        solution = Solution(tuple(map(round, relaxed.gangs)), relaxed.uses)
        if target is None or target.value != bound:
            return solution, BELOW_FLOORS
        if not self._price_pods(target.gangs)[2]:
            return solution, BELOW_FLOORS
        start = Start(solution, relaxed.split, relaxed.split_gangs)
        partial = self._place(bound, start, FIRST_WORK)
        return partial.solution, partial.shortage

    def _choose_fitting_target(self, most: int) -> tuple[CutMasterResult, Start] | None:
        """Choose a target of whose pods fractions fit, and where to begin with it.

        Others are cut off. After many cuts, or where no other one is found, the one
        that came nearest is taken as it is, but only once.
        """
        most_idle = CUT_OFF_STEPS // self._source.model.pricing.work
        while True:
            bound = self._incumbent.bound
            target = self._choose_target(min(most, bound))
            if self._incumbent.bound < bound:
                self._idle, self._nearest = 0, None
            if target is None:
                is_over = min(most, self._incumbent.bound) <= self._incumbent.value
                return None if is_over else self._take_nearest()
            master, result, fits = self._price_pods(target.gangs)
            if self._nearest is None or result.bound > self._nearest[2].bound:
                self._nearest = target, master, result
            is_last = self._idle >= most_idle or self._cut_off >= MAX_CUT_OFF
            may_branch = is_last and not self._has_branched
            if not fits and may_branch and most >= self._incumbent.bound:
                branched = self._branch()
                if branched is not None:
                    return branched
                continue
            if fits:
                return target, self._dive(target.gangs, master, result)
            if is_last:
                return self._take_nearest()
            self._cut_off += 1
            self._idle += 1

    def _take_nearest(self) -> tuple[CutMasterResult, Start] | None:
        """Take the target of whose pods the most fractions fit; None: it was taken."""
        if self._nearest is None or self._was_taken:
            return None
        self._was_taken = True
        target, single_pods, result = self._nearest
        return target, self._dive(target.gangs, single_pods, result)

    def _branch(self) -> tuple[CutMasterResult, Start] | None:
        """Branch over gangs for a target of whose pods fractions fit; a lower bound.

        Cuts rule out one set of gangs after the other, and there may be very many that
        are worth as much.
        """
        self._has_branched = True
        incumbent = self._incumbent
        tree = GangBranching(
            self._source.model,
            self._first_patterns,
            incumbent.objective,
            incumbent.floors,
        )
        found = tree.run(incumbent.value, incumbent.bound)
        incumbent.bound = max(incumbent.value, found.bound)
        if not found.gangs:
            return None
        target = CutMasterResult(found.gangs, found.bound, found.bound)
        master, result, _ = self._price_pods(found.gangs)
        return target, self._dive(found.gangs, master, result)

    def _dive(
        self, gangs: Sequence[int], single_pods: MasterData, result: MasterResult
    ) -> Start:
        """Begin with a whole answer that comes near to places for all pods."""
        source = self._source
        pool = ColumnPool()
        pool.add_result(result)
        relaxed = solve_relaxation(
            single_pods, pool.list_promising(), Objective(self._devices), ()
        ) or RelaxedSolution((), (), ())
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
        goal = CutMasterGoal(incumbent.objective, incumbent.floors, most)
        target = self._cut_master.solve(goal, budget, CUT_MASTER_WORK)
        if most == incumbent.bound:
            incumbent.bound = max(incumbent.value, target.bound)
        is_better = bool(target.gangs) and target.value > incumbent.value
        return target if is_better else None

    def _price_pods(
        self, gangs: Sequence[int]
    ) -> tuple[MasterData, MasterResult, bool]:
        """Fit fractions of the pods of these gangs, and say whether all of them fit.

        Brings patterns that are made for these pods, or cuts that rule the gangs out.
        """
        pods = count_pods(self._data, gangs)
        single_pods = split_into_pods(self._data, pods, self._devices)
        result = None
        if self._pod_master is not None:
            result = self._source.run_again(self._pod_master, pods)
        if result is None:
            self._pod_master = Master(single_pods, Objective(self._devices), ())
            first_prices = [devices * SCALE for devices in self._devices]
            result = self._source.run(self._pod_master, first_prices)
        pairs = zip(self._devices, pods, strict=True)
        fits = result.bound >= sum(devices * count for devices, count in pairs)
        return single_pods, result, fits

    def _place(self, worth: int, start: Start, work: float) -> PartialSolution:
        """Look for places for gangs of so much worth.

        Where one is left, gangs are taken out until the rest have places.
        """
        partial = seek_worth(self._source, self._incumbent, worth, start, work)
        if partial.shortage:
            offer_placed(self._source, self._incumbent, partial.solution)
        return partial
