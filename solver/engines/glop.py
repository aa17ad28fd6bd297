"""The only calls of GLOP: a linear program that grows by columns.

Each solve begins at the last basis. What comes out is floating point and used as advice
alone: prices are rounded to integers and every bound is computed from those.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from ortools.linear_solver import pywraplp  # type: ignore[import-untyped]  # none

from solver.stages import stage

AS_IT_IS, PREPROCESSED = "use_preprocessing: false", "use_preprocessing: true"
"""Presolve is lost on a program that grows, and each way has ended some as ABNORMAL:
where the first does, the second is tried."""


class ProgramSolution(Struct, frozen=True):
    """What a solved program is worth, and the prices of its rows."""

    worth: float
    prices: list[float]


class Program:
    """max cost * x, lower <= rows * x <= upper, 0 <= x <= most.

    Rows are fixed; `add` columns at any time and `solve` again.
    """

    def __init__(self, bounds: Sequence[tuple[float | None, float | None]]) -> None:
        self._solver = pywraplp.Solver.CreateSolver("GLOP")
        self._solver.SetSolverSpecificParametersAsString(AS_IT_IS)
        infinity = self._solver.infinity()
        self._rows = [
            self._solver.Constraint(
                -infinity if lower is None else lower,
                infinity if upper is None else upper,
            )
            for lower, upper in bounds
        ]
        self._columns: list[pywraplp.Variable] = []
        self._is_solved = False
        self._objective = self._solver.Objective()
        self._objective.SetMaximization()

    def add(
        self, cost: float, entries: Sequence[tuple[int, float]], most: float | None
    ) -> None:
        """Add a column; entries are (row, coefficient)."""
        most = self._solver.infinity() if most is None else most
        column = self._solver.NumVar(0.0, most, "")
        self._objective.SetCoefficient(column, cost)
        for row, coefficient in entries:
            self._rows[row].SetCoefficient(column, coefficient)
        self._columns.append(column)
        self._is_solved = False

    def limit(self, column: int, least: float, most: float) -> None:
        """Change the limits of a column, by its number in the order of `add`."""
        self._columns[column].SetBounds(least, most)
        self._is_solved = False

    def limit_row(self, row: int, most: float) -> None:
        """Change what a row is at most."""
        self._rows[row].SetUb(most)
        self._is_solved = False

    def solve(self) -> ProgramSolution | None:
        """Solve; None: GLOP gave up for numerical reasons."""
        with stage("solve"):
            status = self._solver.Solve()
            if status == pywraplp.Solver.ABNORMAL:
                self._solver.SetSolverSpecificParametersAsString(PREPROCESSED)
                status = self._solver.Solve()
                self._solver.SetSolverSpecificParametersAsString(AS_IT_IS)
        self._is_solved = status == pywraplp.Solver.OPTIMAL
        if not self._is_solved:
            return None
        # Read all at once: after any change the duals would be zeros without an error.
        prices = [row.dual_value() for row in self._rows]
        return ProgramSolution(self._objective.Value(), prices)

    def read_values(self, count: int | None = None) -> list[float]:
        """Read the values of the first `count` columns or of all, as solved last.

        One call for each: most programs are solved for their prices alone.

        Raises:
            RuntimeError: It has changed since, or has no solution.
        """
        if not self._is_solved:
            msg = "the linear program has changed since, or has no solution"
            raise RuntimeError(msg)
        return [column.solution_value() for column in self._columns[:count]]
