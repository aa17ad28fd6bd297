"""The cut master: which gangs could be in at all, a bound that knows gangs are whole.

Prices of pods say what all nodes together can earn, so every set of gangs whose pods
cost more is impossible: a cut. CP-SAT chooses the best gangs within all cuts; if nodes
could not even take fractions of those, pricing finds another cut (Benders).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from ortools.sat.python import cp_model

from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.master import Cut, MasterData
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.kinds.demand import GangKind


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
    """The cuts so far, and what each gang costs by them."""

    def __init__(self, data: MasterData, cuts: Sequence[Cut]) -> None:
        """`cuts`: may become more later."""
        self._data = data
        self._cuts = cuts
        self._costs: list[list[int]] = []
        """Of each cut what a gang costs, by gang kind."""

    def solve(
        self, goal: CutMasterGoal, budget: Budget, limit: float
    ) -> CutMasterResult:
        """Choose gangs within the cuts; all objectives must be of gangs only."""
        self._weigh_gangs()
        model = cp_model.CpModel()
        gangs = [
            model.new_int_var(0, most, f"in[{g}]")
            for g, most in enumerate(self._data.available)
        ]
        for cut, costs in zip(self._cuts, self._costs, strict=True):
            model.add(cp_model.LinearExpr.weighted_sum(gangs, costs) <= cut.earned)
        for floor in goal.floors:
            worth = cp_model.LinearExpr.weighted_sum(gangs, floor.objective.gangs)
            model.add(worth >= floor.value)
        gain = cp_model.LinearExpr.weighted_sum(gangs, goal.objective.gangs)
        model.add(gain <= goal.most)
        model.maximize(gain)
        outcome = budget.solve(model, limit)
        if outcome is None:
            return CutMasterResult((), 0, goal.most)
        bound = min(goal.most, outcome.whole_bound)
        return CutMasterResult(
            tuple(map(outcome.value, gangs)), outcome.value_reached, bound
        )

    def _weigh_gangs(self) -> None:
        """Say what gangs cost by the cuts that are new."""
        members = [kind.members for kind in self._data.gangs]
        for cut in self._cuts[len(self._costs) :]:
            prices = cut.prices
            self._costs.append(
                [sum(prices[m] * pods for m, pods in pairs) for pairs in members]
            )


def split_into_pods(
    data: MasterData, pods: Sequence[int], worth: Sequence[int]
) -> MasterData:
    """Make master data of gangs of one pod each: can the nodes take all of them?

    `pods` and `worth`: by member kind.
    """
    kinds = tuple(GangKind(0, worth[m], ((m, 1),)) for m in range(data.members))
    return MasterData(kinds, tuple(pods), data.members, data.sizes, data.clusters)
