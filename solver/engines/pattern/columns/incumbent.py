"""The best answer so far to one objective, and the bound above it."""

from __future__ import annotations

from collections.abc import Sequence

from solver.engines.pattern.columns.integer_master import Solution, evaluate
from solver.engines.pattern.columns.objective import Floor, Objective


class Incumbent:
    """What is known of one objective above the floors of earlier ones."""

    def __init__(
        self, objective: Objective, floors: Sequence[Floor], best: Solution | None
    ) -> None:
        """`best`: an answer to begin with, above all floors."""
        self.objective = objective
        self.floors = tuple(floors)
        self.best = best
        """The best answer so far."""
        self.value = 0 if best is None else evaluate(objective, best)
        """What it is worth."""
        self.bound = 0
        """No answer is worth more."""

    @property
    def is_proven(self) -> bool:
        """True if nothing can be better."""
        return self.best is not None and self.value >= self.bound

    @property
    def counts_only_gangs(self) -> bool:
        """True if the objective and all floors count gangs alone."""
        objectives = (self.objective, *(floor.objective for floor in self.floors))
        return not any(o.rank or o.slack or o.touched for o in objectives)

    def offer(self, solution: Solution) -> bool:
        """Take a solution that is better and above all floors; whether it was."""
        value = evaluate(self.objective, solution)
        if self.best is not None and value <= self.value:
            return False
        if not keeps_floors(solution, self.floors):
            return False
        self.best, self.value = solution, value
        return True


def keeps_floors(solution: Solution, floors: Sequence[Floor]) -> bool:
    """True if a solution is above all floors."""
    return all(evaluate(floor.objective, solution) >= floor.value for floor in floors)
