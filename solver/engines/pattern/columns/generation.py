"""One goal over more patterns than can be listed: price, round, decide, tighten.

The master's shares are rounded; CP-SAT decides all gangs together with the patterns of
some classes, group by group. What then lies between the answer and the bound is mostly
that gangs are whole, which the master does not know: cuts do.
"""

from __future__ import annotations

from collections.abc import Sequence

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.cuts import (
    CutMasterGoal,
    count_pods,
    solve_cut_master,
    split_into_pods,
)
from solver.engines.pattern.columns.integer_master import (
    IntegerMaster,
    Solution,
    evaluate,
)
from solver.engines.pattern.columns.master import SCALE, Cut, Master, MasterResult
from solver.engines.pattern.columns.model import PatternModel, count_devices
from solver.engines.pattern.columns.objective import Floor, Objective, bound_trivially
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.columns.rounding import round_down, solve_relaxation

MAX_NEIGHBORHOODS = 12
"""Groups of classes that are freed one after the other at most."""
RELAXED_PATTERNS = 12
"""Patterns of a class that the relaxed answer may mix."""
MAX_TARGETS = 24
"""Sets of gangs that are tried beyond the best answer."""
WORK_SHARE = 0.5
"""Of the work that is left, what one neighborhood may take."""
LATER_WORK = 1.0
"""Work that a goal beyond the gangs may take."""
TIGHTEN_WORK = 1.0
"""Work that is left for `_tighten`."""
CUT_MASTER_WORK, TARGET_WORK = 0.5, 1.0
"""Work that choosing a target may take, and looking for patterns for it."""


class ColumnGeneration:
    """The search for one objective; call `run` once, then read the rest."""

    def __init__(
        self,
        model: PatternModel,
        budget: Budget,
        objective: Objective,
        floors: Sequence[Floor],
        best: Solution | None,
    ) -> None:
        """`best`: an answer to begin with, above all floors."""
        self._model = model
        self._budget = budget
        self._objective = objective
        self._floors = tuple(floors)
        self._pool = ColumnPool()
        self._cuts: list[Cut] = []
        self.best = best
        """The best answer so far."""
        self.value = 0 if best is None else evaluate(objective, best)
        """What it is worth."""
        self.bound = 0
        """No answer is worth more."""

    def run(self) -> None:
        """Find an answer and a bound."""
        # First price: the master's bound holds for whole numbers too, and its columns
        # and what was nearly as good fill the pool.
        master = Master(self._model.data, self._objective, self._floors)
        if self.best is not None:
            master.add_columns(self.best.uses)
            self._pool.add_uses(self.best.uses)
        result = self._run_master(master, self._model.first_prices)
        trivial_bound = bound_trivially(self._objective, self._model.data.available)
        self.bound = min(result.bound, trivial_bound)
        # Then round: few classes are split by the relaxed answer, all others stay.
        split = self._round_relaxation()
        # Then improve: CP-SAT frees some classes at a time, the split ones first, and
        # always all gangs. Later goals get one group only.
        counts_only_gangs = self._counts_only_gangs()
        neighborhoods = self._pool.split_into_neighborhoods(split)
        neighborhoods = neighborhoods[: MAX_NEIGHBORHOODS if counts_only_gangs else 1]
        for number, patterns_by_class in enumerate(neighborhoods):
            if self.best is None or self.value >= self.bound:
                return
            is_last = number == len(neighborhoods) - 1
            share = 1.0 if is_last else WORK_SHARE
            limit = (self._budget.remaining - TIGHTEN_WORK) * share
            if not counts_only_gangs:
                limit = LATER_WORK
            self._improve(patterns_by_class, self._floors, self.best, limit)
        # Finally tighten the bound: what is left of the gap is that gangs are whole.
        if counts_only_gangs and self.best is not None:
            self._tighten()

    def _run_master(self, master: Master, first_prices: Sequence[int]) -> MasterResult:
        """Run a master, and keep its patterns and cuts for what follows."""
        model = self._model
        result = master.run(model.pricing, model.bound_pricing, first_prices)
        self._pool.add_result(result)
        self._budget.count_patterns(len(self._pool))
        self._cuts.extend(result.cuts)
        return result

    def _round_relaxation(self) -> Sequence[int]:
        """Begin with what is whole of a relaxed answer; returns the split classes."""
        data = self._model.data
        patterns_by_class = self._pool.list_patterns(RELAXED_PATTERNS)
        relaxed = solve_relaxation(
            data, patterns_by_class, self._objective, self._floors
        )
        if relaxed is None:
            self._begin_with(Solution((0,) * len(data.gangs), ()))
            return ()
        self._begin_with(round_down(data, relaxed))
        return relaxed.split

    def _begin_with(self, solution: Solution) -> None:
        """Take an answer to begin with, unless it is below a floor."""
        keeps_floors = all(
            evaluate(floor.objective, solution) >= floor.value for floor in self._floors
        )
        value = evaluate(self._objective, solution)
        if keeps_floors and (self.best is None or value > self.value):
            self.best, self.value = solution, value

    def _improve(
        self,
        patterns_by_class: dict[int, list[Pattern]],
        floors: Sequence[Floor],
        hint: Solution,
        limit: float,
    ) -> None:
        """Decide some classes and all gangs anew; the others keep what they use."""
        uses = () if self.best is None else self.best.uses
        fixed = [use for use in uses if use[0] not in patterns_by_class]
        integer_master = IntegerMaster(self._model.data, patterns_by_class, fixed)
        integer_master.add_floors(floors)
        integer_master.hint(hint)
        result = integer_master.solve(self._objective, self.bound, self._budget, limit)
        if result.solution is not None and (
            self.best is None or result.value > self.value
        ):
            self.best, self.value = result.solution, result.value

    # --- gangs are whole -----------------------------------------------------------

    def _counts_only_gangs(self) -> bool:
        """Whether the objective and all floors count gangs alone."""
        floors = (floor.objective for floor in self._floors)
        return not any(
            o.rank or o.slack or o.touched for o in (self._objective, *floors)
        )

    def _tighten(self) -> None:
        """Aim at better gangs until there are none, or the nodes cannot take them.

        Each round cuts the target off, finds a better answer, or gives the target up
        and aims lower. The last leaves a gap between value and bound.
        """
        target = self.bound
        for _ in range(MAX_TARGETS):
            if target <= self.value or self._budget.remaining <= 0:
                return
            # First choose the best gangs within all cuts. Nothing is better than
            # those, so their worth is a bound, as long as no target was given up.
            result = solve_cut_master(
                self._model.data,
                self._cuts,
                CutMasterGoal(self._objective, self._floors, target),
                self._budget,
                CUT_MASTER_WORK,
            )
            if target == self.bound:
                self.bound = target = max(self.value, result.bound)
            if not result.gangs or result.value <= self.value:
                return
            # Then ask the nodes: a cut, or patterns for exactly these gangs.
            is_cut_off = self._cut_off(result.gangs)
            if not is_cut_off and not self._try_gangs(result.gangs):
                target = result.value - 1

    def _cut_off(self, gangs: Sequence[int]) -> bool:
        """Whether nodes could not even take fractions of these pods; adds the cut.

        If they can, the pool has patterns that are made for these pods now.
        """
        data = self._model.data
        pods = count_pods(data, gangs)
        worth = [count_devices(self._model.demand, m) for m in range(data.members)]
        single_pods = split_into_pods(data, pods, worth)
        master = Master(single_pods, Objective(tuple(worth)), ())
        result = self._run_master(master, [price * SCALE for price in worth])
        demanded = sum(each * count for each, count in zip(worth, pods, strict=True))
        return result.bound < demanded

    def _try_gangs(self, gangs: Sequence[int]) -> bool:
        """Look for a better answer with the patterns that these gangs brought."""
        former_value = self.value
        neighborhoods = self._pool.split_into_neighborhoods(())
        patterns_by_class = neighborhoods[0] if neighborhoods else {}
        better = Floor(self._objective, former_value + 1)
        uses = () if self.best is None else self.best.uses
        hint = Solution(tuple(gangs), tuple(uses))
        self._improve(patterns_by_class, (*self._floors, better), hint, TARGET_WORK)
        return self.value > former_value
