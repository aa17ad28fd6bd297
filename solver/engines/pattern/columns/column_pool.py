"""The patterns that CP-SAT may choose from, class by class, and in which groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from solver.engines.pattern.columns.master import MasterResult, PatternUse
from solver.engines.pattern.columns.pricing import Pattern

MODEL_PATTERNS = 6000
"""Patterns that CP-SAT chooses from in one model."""
LEAST_ADDED, MOST_ADDED = 12, 60
"""Patterns of a class that are added for one run of the master."""
ADDED = 16_000
"""Patterns of all classes that are added for one run of the master."""


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

    def list_patterns(self, most: int) -> dict[int, list[Pattern]]:
        """List so many patterns of each class."""
        return {
            owner: list(patterns)[:most]
            for owner, patterns in sorted(self._patterns.items())
            if patterns
        }

    def split_into_neighborhoods(
        self, first: Sequence[int]
    ) -> list[dict[int, list[Pattern]]]:
        """Split the classes into groups whose patterns fit into one model.

        CP-SAT frees one group after the other; classes in `first` come first.
        """
        most = MODEL_PATTERNS
        if len(self) > MODEL_PATTERNS:
            most = max(LEAST_ADDED, MODEL_PATTERNS // (len(self._patterns) or 1))
        patterns_by_class = self.list_patterns(most)
        owners = dict.fromkeys([*first, *patterns_by_class])
        neighborhoods: list[dict[int, list[Pattern]]] = []
        room = 0
        for owner in owners:
            patterns = patterns_by_class[owner]
            if len(patterns) > room:
                neighborhoods.append({})
                room = MODEL_PATTERNS
            neighborhoods[-1][owner] = patterns
            room -= len(patterns)
        return neighborhoods
