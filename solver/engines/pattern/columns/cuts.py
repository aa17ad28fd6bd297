"""The cut master: which gangs could be in at all, a bound that knows gangs are whole.

Prices of pods say what all nodes together can earn, so every set of gangs whose pods
cost more is impossible: a cut. CP-SAT chooses the best gangs within all cuts; if nodes
could not even take fractions of those, pricing finds another cut (Benders).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

from msgspec import Struct, structs

from solver.engines import cp_model
from solver.engines.cpsat import Solved
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.master import Cut
from solver.engines.pattern.columns.master_data import MasterData, count_pods
from solver.engines.pattern.columns.objective import Floor, Objective

CUTS_AT_ONCE = 3
"""Cuts that CP-SAT is told of at a time: those that a choice is beyond the most."""
PARTS, MOST_COST = 1 << 20, 10_000
"""Costs are compared in such parts of what nodes earn; summed, in whole numbers up to
the second."""
MAX_CHEAPER, CHEAPER_WORK = 5, 0.05
"""Times that cheaper gangs are looked for, for those within all cuts; and work each."""
QUICK_WORK = 0.1
"""Work of a choice without presolve."""
Gangs = tuple[int, ...]
"""How many of each kind."""


class CutMasterGoal(Struct, frozen=True):
    """What gangs are looked for: the best by an objective, above some floors."""

    objective: Objective
    floors: tuple[Floor, ...]
    most: int
    """Worth no more than this."""


class CutMasterResult(Struct, frozen=True):
    """The best gangs within the cuts."""

    gangs: tuple[int, ...]
    """How many of each kind; empty: none were found."""
    value: int
    bound: int


class CutMaster:
    """The best gangs within the cuts so far, as often as asked.

    Cuts become hundreds, and few of them matter. CP-SAT is told of those alone that a
    choice was beyond, and chooses again until nothing is beyond any.
    """

    def __init__(self, data: MasterData, cuts: Sequence[Cut]) -> None:
        """`cuts`: may become more later."""
        self._data = data
        self._cuts = cuts
        self._told: dict[int, list[int]] = {}
        """By number of each cut that CP-SAT is told of: what a gang of each kind costs.
        """

    def solve(
        self, goal: CutMasterGoal, budget: Budget, limit: float
    ) -> CutMasterResult:
        """Choose gangs within the cuts; all objectives must be of gangs only.

        What is best within fewer cuts bounds what is best within all.
        """
        reserve, bound = max(0.0, budget.remaining - limit), goal.most
        while budget.remaining > reserve:
            model, gangs, gain = self._make_model(goal)
            model.maximize(gain)
            outcome = self._solve(model, budget, budget.remaining - reserve)
            if outcome is None:
                break
            bound = min(bound, outcome.whole_bound)
            best = tuple(map(outcome.value, gangs))
            if not self._tell(best):
                chosen = self._choose_cheaper(goal, best, budget, reserve)
                return CutMasterResult(chosen, outcome.value_reached, bound)
        return CutMasterResult((), 0, bound)

    def _solve(
        self, model: cp_model.CpModel, budget: Budget, limit: float
    ) -> Solved | None:
        """Solve without presolve, which seldom pays; where that fails, with it.

        The better choice of both, with the lower bound.
        """
        first = budget.solve(model, min(QUICK_WORK, limit), presolve=False)
        if limit <= QUICK_WORK or (first is not None and first.optimal):
            return first
        second = budget.solve(model, limit - QUICK_WORK)
        if first is None or second is None or second.optimal:
            return second or first
        better = max(second, first, key=lambda outcome: outcome.value_reached)
        return structs.replace(better, bound=min(first.bound, second.bound))

    def _choose_cheaper(
        self, goal: CutMasterGoal, best: Gangs, budget: Budget, reserve: float
    ) -> Gangs:
        """Choose gangs that are worth as much and cost less, by all cuts told of.

        What is far from all cuts fits more often than what just meets them.
        """
        worth = sum(map(mul, goal.objective.gangs, best))
        for _ in range(MAX_CHEAPER):
            if budget.remaining <= reserve or not self._told:
                break
            model, gangs, gain = self._make_model(goal)
            model.add(gain >= worth)
            costs = self._add_costs()
            model.minimize(cp_model.LinearExpr.weighted_sum(gangs, costs))
            limit = min(CHEAPER_WORK, budget.remaining - reserve)
            outcome = budget.solve(model, limit, presolve=False)
            if outcome is None:
                break
            cheaper = tuple(map(outcome.value, gangs))
            if not self._tell(cheaper):
                return cheaper
        return best

    def _add_costs(self) -> list[int]:
        """Add up what a gang of each kind costs, as shares of what nodes earn."""
        totals = [0] * len(self._data.gangs)
        for number, costs in self._told.items():
            earned = max(1, self._cuts[number].earned)
            for g, cost in enumerate(costs):
                totals[g] += cost * PARTS // earned
        unit = max(1, max(totals) // MOST_COST)
        return [total // unit for total in totals]

    def _make_model(
        self, goal: CutMasterGoal
    ) -> tuple[cp_model.CpModel, list[cp_model.IntVar], cp_model.LinearExprT]:
        """State the cuts told of and the floors; with the gangs, and their worth."""
        model = cp_model.CpModel()
        gangs = [
            model.new_int_var(0, most, f"in[{g}]")
            for g, most in enumerate(self._data.available)
        ]
        for number, costs in self._told.items():
            earned = self._cuts[number].earned
            model.add(cp_model.LinearExpr.weighted_sum(gangs, costs) <= earned)
        for floor in goal.floors:
            worth = cp_model.LinearExpr.weighted_sum(gangs, floor.objective.gangs)
            model.add(worth >= floor.value)
        gain = cp_model.LinearExpr.weighted_sum(gangs, goal.objective.gangs)
        model.add(gain <= goal.most)
        return model, gangs, gain

    def _tell(self, gangs: Gangs) -> bool:
        """Tell of the cuts that some gangs are beyond the most; whether of any."""
        pods = count_pods(self._data, gangs)
        beyond: list[tuple[int, int]] = []
        for number, cut in enumerate(self._cuts):
            excess = sum(map(mul, cut.prices, pods)) - cut.earned
            if excess > 0:
                beyond.append((-(excess * PARTS // max(1, cut.earned)), number))
        for _, number in sorted(beyond)[:CUTS_AT_ONCE]:
            prices = self._cuts[number].prices
            self._told[number] = [
                sum(prices[m] * each for m, each in kind.members)
                for kind in self._data.gangs
            ]
        return bool(beyond)
