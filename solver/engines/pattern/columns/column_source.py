"""Masters in, patterns and cuts out: what column generation brought so far."""

from __future__ import annotations

from collections.abc import Sequence

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.master import Cut, Master, MasterResult
from solver.engines.pattern.columns.model import PatternModel


class ColumnSource:
    """Runs masters, and keeps what they bring for the searches that follow."""

    def __init__(self, model: PatternModel, budget: Budget) -> None:
        self.model = model
        self.budget = budget
        self.pool = ColumnPool()
        self.cuts: list[Cut] = []

    def run(self, master: Master, first_prices: Sequence[int]) -> MasterResult:
        """Run a master from these prices on, times SCALE."""
        model = self.model
        result = master.run(model.pricing, model.bound_pricing, first_prices)
        return self._keep(result)

    def run_again(
        self, master: Master, available: Sequence[int]
    ) -> MasterResult | None:
        """Run a master for other numbers of gangs, by kind; None: GLOP gave up."""
        model = self.model
        result = master.run_again(model.pricing, model.bound_pricing, available)
        return None if result is None else self._keep(result)

    def _keep(self, result: MasterResult) -> MasterResult:
        self.pool.add_result(result)
        self.budget.count_patterns(len(self.pool))
        self.cuts.extend(result.cuts)
        return result
