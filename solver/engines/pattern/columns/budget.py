"""How much work is left, and what was done: work units, never the clock."""

from __future__ import annotations

from solver.engines import cp_model, cpsat
from solver.engines.goals import Effort
from solver.stopping import is_stopped


class Budget:
    """Counts the work of one batch."""

    def __init__(self, work_limit: float, seed: int) -> None:
        self._seed = seed
        self._remaining = work_limit
        self._work = 0.0
        self._models = self._variables = self._constraints = 0
        self._patterns = 0

    @property
    def remaining(self) -> float:
        """Deterministic time of CP-SAT; none once the search is to end."""
        return 0.0 if is_stopped() else self._remaining

    def solve(
        self, model: cp_model.CpModel, limit: float, *, presolve: bool = True
    ) -> cpsat.Solved | None:
        """Solve a model with at most so much work, and count it; None: no solution.

        `presolve`: see `cpsat.solve`.
        """
        outcome = cpsat.solve(
            model,
            work_limit=min(limit, self.remaining),
            seed=self._seed,
            feasibility=False,
            presolve=presolve,
        )
        proto = model.proto
        self._models += 1
        self._variables = max(self._variables, len(proto.variables))
        self._constraints = max(self._constraints, len(proto.constraints))
        self._work += outcome.work
        self._remaining -= outcome.work
        return outcome if isinstance(outcome, cpsat.Solved) else None

    def count_patterns(self, patterns: int) -> None:
        """Note that there were so many patterns to choose from."""
        self._patterns = max(self._patterns, patterns)

    def to_effort(self) -> Effort:
        """Report what was done."""
        return Effort(
            models=self._models,
            variables=self._variables,
            constraints=self._constraints,
            patterns=self._patterns,
            work=round(self._work, 6),
        )
