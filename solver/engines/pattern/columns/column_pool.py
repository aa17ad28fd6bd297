"""The patterns that CP-SAT may choose from, class by class."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from solver.engines.pattern.columns.master import MasterResult
from solver.engines.pattern.columns.master_data import PatternUse
from solver.engines.pattern.columns.pricing import Pattern

LEAST_ADDED, MOST_ADDED = 12, 60
"""Patterns of a class that are added for one run of the master."""
ADDED = 16_000
"""Patterns of all classes that are added for one run of the master."""
LEAST_RELAXED, MOST_RELAXED = 4, 12
"""Patterns of a class that a relaxed answer may mix."""
RELAXED = 12_000
"""Patterns of all classes that it may mix, unless each class has but few."""


class ColumnPool:
    """Patterns worth a try, each class's most promising first."""

    def __init__(self) -> None:
        self._patterns: dict[int, dict[Pattern, None]] = {}
        """By class."""

    def __len__(self) -> int:
        return sum(map(len, self._patterns.values()))

    def add_uses(self, uses: Iterable[PatternUse]) -> None:
        """Add what an answer uses."""
        for owner, pattern, _ in uses:
            self._patterns.setdefault(owner, {})[pattern] = None

    def add_result(self, result: MasterResult) -> None:
        """Add what the master's program uses, then what was nearly as good."""
        for column in sorted(result.columns, key=lambda column: -column.share):
            self.add_uses(column.uses)
        share = ADDED // (len(result.patterns) or 1)
        added = max(LEAST_ADDED, min(MOST_ADDED, share))
        for owner, patterns in enumerate(result.patterns):
            pooled = self._patterns.setdefault(owner, {})
            most = len(pooled) + added
            for pattern in patterns:
                if pattern.steps and len(pooled) < most:
                    pooled[pattern] = None

    @property
    def classes(self) -> int:
        """Count the classes that have patterns here."""
        return len(self._patterns)

    def list_class(self, owner: int, most: int) -> list[Pattern]:
        """List so many patterns of a class."""
        return list(islice(self._patterns.get(owner, ()), most))

    def list_patterns(self, most: int | None = None) -> dict[int, list[Pattern]]:
        """List so many patterns of each class, or all."""
        return {
            owner: list(patterns)[:most]
            for owner, patterns in sorted(self._patterns.items())
            if patterns
        }

    def list_promising(self) -> dict[int, list[Pattern]]:
        """List the most promising patterns of each class, for one linear program."""
        share = RELAXED // (self.classes or 1)
        return self.list_patterns(max(LEAST_RELAXED, min(MOST_RELAXED, share)))
