"""The scale model as one call: goals one after the other, each with its bound.

Small graphs are listed whole and CP-SAT decides over all patterns, so what it proves is
proven. Large ones are priced.
"""

from __future__ import annotations

from collections.abc import Sequence

from solver.decision import Status
from solver.engines.goals import SLACK, EngineResult, Goal, goals_of
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.column_pool import AT_ONCE
from solver.engines.pattern.columns.enumeration import Listing, maximal
from solver.engines.pattern.columns.generation import PricedGoal, measured
from solver.engines.pattern.columns.greedy import Greedy
from solver.engines.pattern.columns.integer_master import Choice, Choosing
from solver.engines.pattern.columns.layout import Layout
from solver.engines.pattern.columns.objective import (
    Measure,
    Reached,
    measure_of,
    worth_at_most,
)
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.extract import extract
from solver.kinds.demand import Demand
from solver.kinds.nodes import NodeKind
from solver.problem.problem import Parameters


class PatternSearch:
    """One run of the scale model; see `Layout` for what it raises when it is made."""

    def __init__(
        self,
        demand: Demand,
        kinds: Sequence[NodeKind],
        parameters: Parameters,
        *,
        list_limit: int = AT_ONCE,
        coarser: int = 1,
    ) -> None:
        """`list_limit`: patterns that are listed at most; `coarser`: see `Layout`."""
        self._goals = goals_of(demand, parameters.tiers)
        keeps = any(tier == SLACK for tier, _ in self._goals)
        self._layout = Layout(demand, kinds, keeps=keeps, coarser=coarser)
        self._list_limit = list_limit
        self._budget = Budget(parameters.work_limit, parameters.seed)

    def run(self) -> EngineResult:
        """Pursue one goal after the other; each keeps what was reached before."""
        listed = self._listed()
        best = self._everything() if listed is None else None
        reached: list[Reached] = []
        bounds: dict[Goal, int | None] = {}
        proven = optimal = True
        for goal in self._goals:
            measure = measure_of(self._layout.demand, goal)
            if listed is not None:
                found, value, bound = self._over_all(listed, measure, reached, best)
            else:
                found, value, bound = self._priced(measure, reached, best)
                if goal[0] >= SLACK and not self._layout.is_exact:
                    bound = 0
            bounds[goal] = abs(bound) if proven else None
            proven = proven and found is not None and bound == value
            if goal[0] < SLACK:
                optimal = proven
            if found is not None:
                best = found
                reached.append(Reached(measure, value))
        return self._found(best, bounds, optimal=optimal)

    def _everything(self) -> Choice | None:
        """Take all gangs in one by one, if that can be; an answer to part is no help.

        What a greedy answer settles is worse than what prices do.
        """
        if not self._layout.is_exact:
            return None
        choice = Greedy(self._layout).choice()
        return choice if choice.gangs == self._layout.side.available else None

    def _found(
        self, best: Choice | None, bounds: dict[Goal, int | None], *, optimal: bool
    ) -> EngineResult:
        effort, layout = self._budget.effort(), self._layout
        if best is None:
            return EngineResult(status=Status.NOT_PROVEN, bounds=bounds, effort=effort)
        return EngineResult(
            status=Status.OPTIMAL if optimal else Status.FEASIBLE,
            placements=extract(layout.demand, layout.graph, layout.steps, best),
            bounds=bounds,
            effort=effort,
        )

    def _listed(self) -> dict[int, list[Pattern]] | None:
        """List all patterns, if they are few."""
        layout = self._layout
        if not layout.is_exact:
            return None
        listing = Listing(layout.steps, layout.demand.pods, layout.kept)
        found = listing.patterns(layout.pricing)
        if found is None:
            return None
        if layout.kept is None and not layout.demand.has_alternatives:
            fewer = [maximal(patterns) for patterns in found]
            found = [patterns for patterns in fewer if patterns is not None]
            if len(found) < len(fewer):
                return None
        count = sum(map(len, found))
        if count > self._list_limit:
            return None
        self._budget.listed(count)
        return dict(enumerate(found))

    def _over_all(
        self,
        offers: dict[int, list[Pattern]],
        measure: Measure,
        reached: Sequence[Reached],
        best: Choice | None,
    ) -> tuple[Choice | None, int, int]:
        """Decide over all patterns."""
        side = self._layout.side
        bound = worth_at_most(measure, side.available)
        model = Choosing(side, offers)
        model.keep(reached)
        if best is not None:
            model.hint(best)
        chosen = model.solve(measure, bound, self._budget, self._budget.left)
        return chosen.choice, chosen.value, chosen.bound

    def _priced(
        self,
        measure: Measure,
        reached: Sequence[Reached],
        best: Choice | None,
    ) -> tuple[Choice | None, int, int]:
        """Decide over patterns that prices find, unless nothing can be better."""
        known = worth_at_most(measure, self._layout.side.available)
        if best is not None and measured(measure, best) == known:
            return best, known, known
        goal = PricedGoal(self._layout, self._budget, measure, reached, best)
        goal.run()
        return goal.best, goal.value, goal.bound
