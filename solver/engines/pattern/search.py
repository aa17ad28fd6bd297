"""The pattern engine as one call: goals one after the other, each with its bound.

Small graphs are enumerated and CP-SAT decides over all patterns, so what it proves is
proven. Large ones are priced.
"""

from __future__ import annotations

from collections.abc import Sequence

from solver.decision import Status
from solver.engines.goals import EngineResult, Goal, goals_of
from solver.engines.pattern.columns.budget import Budget
from solver.engines.pattern.columns.enumeration import (
    PatternEnumeration,
    keep_maximal,
)
from solver.engines.pattern.columns.generation import generate
from solver.engines.pattern.columns.greedy import Greedy
from solver.engines.pattern.columns.integer_master import (
    IntegerMaster,
    Solution,
    evaluate,
)
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import (
    Floor,
    Objective,
    bound_trivially,
    objective_of,
)
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pattern.extract import extract
from solver.engines.pattern.states.graph import Graph
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind
from solver.problem.problem import Parameters
from solver.tiers import Tier

LISTED_PATTERNS = 6000
"""Patterns that CP-SAT chooses from in one model, where all are listed."""


class PatternSearch:
    """One run of the engine; `PatternModel` says what is raised when it is made."""

    def __init__(
        self,
        demand: Demand,
        kinds: Sequence[NodeKind],
        parameters: Parameters,
        *,
        list_limit: int = LISTED_PATTERNS,
        coarseness: int = 1,
        graph: Graph | None = None,
    ) -> None:
        """`list_limit`: patterns that are enumerated at most.

        `coarseness`, `graph`: see `PatternModel`.
        """
        self._goals = goals_of(demand, parameters.last_tier)
        values_slack = any(tier is Tier.LEFTOVER for tier, _ in self._goals)
        self._model = PatternModel(
            demand,
            kinds,
            values_slack=values_slack,
            coarseness=coarseness,
            graph=graph,
        )
        self._list_limit = list_limit
        self._budget = Budget(parameters.work_limit, parameters.seed)

    def run(self) -> EngineResult:
        """Pursue one goal after the other; each keeps what was reached before."""
        # First choose the way: over all patterns, or over those that prices find.
        # There everything may fit one by one, which is the best answer to begin with.
        patterns_by_class = self._enumerate()
        best = self._place_everything() if patterns_by_class is None else None
        floors: list[Floor] = []
        bounds: dict[Goal, int | None] = {}
        is_proven = is_optimal = True
        for goal in self._goals:
            objective = objective_of(self._model.demand, goal)
            if patterns_by_class is not None:
                solution, value, bound = self._solve_over_all(
                    patterns_by_class, objective, floors, best
                )
            else:
                solution, value, bound = self._generate(objective, floors, best)
                # Bounds in coarse levels do not value what is left over: 0 is what no
                # later goal exceeds.
                if goal[0].place >= Tier.LEFTOVER.place and not self._model.is_exact:
                    bound = 0
            # A bound is one only where all earlier goals were proven: it holds for
            # answers that keep what they reached.
            bounds[goal] = abs(bound) if is_proven else None
            is_proven = is_proven and solution is not None and bound == value
            if goal[0].place < Tier.LEFTOVER.place:
                is_optimal = is_proven
            if solution is not None:
                best = solution
                floors.append(Floor(objective, value))
        return self._to_result(best, bounds, is_optimal=is_optimal)

    def _enumerate(self) -> dict[int, list[Pattern]] | None:
        """List all patterns by class, if they are few."""
        model = self._model
        if not model.is_exact:
            return None
        enumeration = PatternEnumeration(
            model.steps, model.demand.pods, model.slack_values
        )
        patterns = enumeration.run(model.pricing)
        if patterns is None:
            return None
        # Where no goal counts more than pods, the largest patterns are enough.
        if model.slack_values is None and not model.demand.has_alternatives:
            maximal = [
                keep_maximal(patterns_of_class) for patterns_of_class in patterns
            ]
            patterns = [kept for kept in maximal if kept is not None]
            if len(patterns) < len(maximal):
                return None
        count = sum(map(len, patterns))
        if count > self._list_limit:
            return None
        self._budget.count_patterns(count)
        return dict(enumerate(patterns))

    def _place_everything(self) -> Solution | None:
        """Take all gangs in one by one, if that can be; an answer to part is no help.

        What a greedy answer settles is worse than what prices do.
        """
        if not self._model.is_exact:
            return None
        solution = Greedy(self._model).run()
        return solution if solution.gangs == self._model.data.available else None

    def _solve_over_all(
        self,
        patterns_by_class: dict[int, list[Pattern]],
        objective: Objective,
        floors: Sequence[Floor],
        best: Solution | None,
    ) -> tuple[Solution | None, int, int]:
        """Decide over all patterns; returns a solution, its value and a bound."""
        data = self._model.data
        bound = bound_trivially(objective, data.available)
        integer_master = IntegerMaster(data, patterns_by_class, best)
        integer_master.add_floors(floors)
        limit = self._budget.remaining
        result = integer_master.solve(objective, bound, self._budget, limit)
        return result.solution, result.value, result.bound

    def _generate(
        self, objective: Objective, floors: Sequence[Floor], best: Solution | None
    ) -> tuple[Solution | None, int, int]:
        """Decide over patterns that prices find, unless nothing can be better."""
        bound = bound_trivially(objective, self._model.data.available)
        if best is not None and evaluate(objective, best) == bound:
            return best, bound, bound
        found = generate(self._model, self._budget, objective, floors, best)
        return found.best, found.value, found.bound

    def _to_result(
        self, best: Solution | None, bounds: dict[Goal, int | None], *, is_optimal: bool
    ) -> EngineResult:
        effort, model = self._budget.to_effort(), self._model
        if best is None:
            return EngineResult(status=Status.NOT_PROVEN, bounds=bounds, effort=effort)
        return EngineResult(
            status=Status.OPTIMAL if is_optimal else Status.FEASIBLE,
            placements=extract(model.demand, model.graph, model.steps, best),
            bounds=bounds,
            effort=effort,
        )
