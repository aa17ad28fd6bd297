"""Targets: the best whole gangs that the cuts allow, and places for all their pods.

Who is in is chosen first, by gangs alone. Where nodes cannot take even fractions of
their pods, prices say so by a new cut (Benders decomposition); else places are looked
for, for gangs of just this worth. Where some pods still lack one, gangs change places.
"""

from __future__ import annotations

from solver.engines.pattern.columns.branching import GangBranching
from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.column_source import ColumnSource
from solver.engines.pattern.columns.cuts import CutMaster, CutMasterGoal
from solver.engines.pattern.columns.diving import dive
from solver.engines.pattern.columns.improvement import seek_worth
from solver.engines.pattern.columns.incumbent import Incumbent
from solver.engines.pattern.columns.integer_master import Solution, evaluate
from solver.engines.pattern.columns.master import Master, MasterResult
from solver.engines.pattern.columns.master_data import (
    SCALE,
    count_pods,
    split_into_pods,
)
from solver.engines.pattern.columns.objective import Objective
from solver.engines.pattern.columns.priced_search import PricedSearch
from solver.engines.pattern.columns.rounding import RelaxedSolution, solve_relaxation

MAX_CUT_OFF = 40
"""Targets that are cut off at most."""
CUT_OFF_STEPS = 30_000_000
"""Of them, one after the other that do not lower the bound: as many as there are
steps for."""
BRANCHING_PATTERNS = 20
"""Patterns of each class that branching begins with."""
CUT_MASTER_WORK = 0.75
"""Work that choosing a target may take."""
PLACE_WORK = 0.5
"""Work that finding places for its pods may take."""
EXCHANGE_WORK = 4.5
"""Work that gangs that change places may take."""


Target = tuple[tuple[int, ...], RelaxedSolution]
"""(gangs of each kind, fractions of places for their pods)."""


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

    def run(self, relaxed: RelaxedSolution) -> None:
        """Look for places for the best target; from there on gangs change places.

        `relaxed`: the answer for fractions of all gangs, to begin with if there is no
        target.
        """
        target = self._find_target()
        nearest = _round(relaxed) if target is None else self._place(*target)
        if not self._incumbent.is_proven:
            search = PricedSearch(self._source, self._incumbent, self._priced)
            search.run(nearest, EXCHANGE_WORK)

    def _find_target(self) -> Target | None:
        """Find the best gangs of whose pods fractions fit; None: none were found.

        Others are cut off. There may be very many that are worth as much: after many
        cuts, branching looks for one.
        """
        incumbent = self._incumbent
        most_idle = CUT_OFF_STEPS // self._source.model.pricing.work
        idle = 0
        for _ in range(MAX_CUT_OFF):
            bound = incumbent.bound
            gangs = self._choose_gangs()
            if gangs is None:
                return None
            target = self._fit(gangs)
            if target is not None:
                return target
            idle = 0 if incumbent.bound < bound else idle + 1
            if idle > most_idle:
                break
        return self._branch()

    def _branch(self) -> Target | None:
        """Branch over gangs for a target of whose pods fractions fit; a lower bound."""
        incumbent = self._incumbent
        tree = GangBranching(
            self._source.model,
            self._first_patterns,
            incumbent.objective,
            incumbent.floors,
        )
        found = tree.run(incumbent.value, incumbent.bound)
        incumbent.bound = max(incumbent.value, found.bound)
        return self._fit(found.gangs) if found.gangs else None

    def _choose_gangs(self) -> tuple[int, ...] | None:
        """Choose the best gangs within all cuts; None: no better ones are to be had.

        Their worth is a bound.
        """
        incumbent, budget = self._incumbent, self._source.budget
        if incumbent.bound <= incumbent.value or budget.remaining <= 0:
            return None
        goal = CutMasterGoal(incumbent.objective, incumbent.floors, incumbent.bound)
        target = self._cut_master.solve(goal, budget, CUT_MASTER_WORK)
        incumbent.bound = max(incumbent.value, target.bound)
        is_better = bool(target.gangs) and target.value > incumbent.value
        return target.gangs if is_better else None

    def _fit(self, gangs: tuple[int, ...]) -> Target | None:
        """Fit fractions of the pods of these gangs, each worth its devices.

        Brings patterns that are made for these pods; None: cuts that rule the gangs
        out.
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
        if result.bound < sum(devices * count for devices, count in pairs):
            return None
        pool = ColumnPool()
        pool.add_result(result)
        relaxed = solve_relaxation(
            single_pods, pool.list_promising(), Objective(self._devices), ()
        ) or RelaxedSolution((), (), ())
        return gangs, relaxed

    def _place(self, gangs: tuple[int, ...], relaxed: RelaxedSolution) -> Solution:
        """Look for places for gangs of this worth; some pods may still lack one.

        A dive begins with a whole answer that comes near to places for all pods.
        """
        source, incumbent = self._source, self._incumbent
        pods = count_pods(self._data, gangs)
        uses = dive(source.model, source.pool, pods, relaxed)
        source.pool.add_uses(uses)
        start = Solution(gangs, uses)
        worth = evaluate(incumbent.objective, start)
        placed = seek_worth(
            source, incumbent, start, relaxed.split, worth=worth, work=PLACE_WORK
        )
        return placed.solution


def _round(relaxed: RelaxedSolution) -> Solution:
    """Take whole gangs, whatever places there are for their pods."""
    return Solution(tuple(map(round, relaxed.gangs)), relaxed.uses)
