"""How much work is left, and what was done: work units, never the clock."""

from __future__ import annotations

from solver.goals import Effort


class Budget:
    """Counts the work of one batch."""

    def __init__(self, work_limit: float, seed: int) -> None:
        self.seed = seed
        self.left = work_limit
        """Deterministic time of CP-SAT."""
        self._work = 0.0
        self._models = self._variables = self._constraints = 0
        self._patterns = 0

    def solved(self, variables: int, constraints: int, work: float) -> None:
        """Count a model."""
        self._models += 1
        self._variables = max(self._variables, variables)
        self._constraints = max(self._constraints, constraints)
        self._work += work
        self.left -= work

    def listed(self, patterns: int) -> None:
        """Count patterns."""
        self._patterns = max(self._patterns, patterns)

    def effort(self) -> Effort:
        """Report what was done."""
        return Effort(
            models=self._models,
            variables=self._variables,
            constraints=self._constraints,
            patterns=self._patterns,
            work=round(self._work, 6),
        )
