"""The patterns that CP-SAT is offered, class by class, and in which turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from solver.engines.pattern.columns.master import Priced, Used
from solver.engines.pattern.columns.pricing import Pattern

AT_ONCE = 6000
"""Patterns that CP-SAT is offered in one model."""
OF_A_CLASS = (12, 60)
"""Patterns of a class that are added for one run of the master: at least, at most."""
ADDED = 16_000
"""Patterns that are added for one run of the master."""


class Offers:
    """Patterns worth a try, each class's most promising first."""

    def __init__(self) -> None:
        self._known: dict[int, dict[Pattern, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))

    def add_used(self, used: Iterable[Used]) -> None:
        """Add what an answer uses."""
        for owner, pattern, _ in used:
            self._known.setdefault(owner, {})[pattern] = None

    def add_priced(self, priced: Priced) -> None:
        """Add what the master plays, then what was nearly as good."""
        for play in sorted(priced.plays, key=lambda play: -play.share):
            self.add_used(play.used)
        few, many = OF_A_CLASS
        added = max(few, min(many, ADDED // (len(priced.seen) or 1)))
        for owner, patterns in enumerate(priced.seen):
            mine = self._known.setdefault(owner, {})
            most = len(mine) + added
            for pattern in patterns:
                if pattern.steps and len(mine) < most:
                    mine[pattern] = None

    def all(self, most: int) -> dict[int, list[Pattern]]:
        """List so many patterns of each class."""
        return {
            owner: list(patterns)[:most]
            for owner, patterns in sorted(self._known.items())
            if patterns
        }

    def turns(self, first: Sequence[int]) -> list[dict[int, list[Pattern]]]:
        """Deal the classes into groups that one model can hold; `first` come first."""
        few = AT_ONCE
        if len(self) > AT_ONCE:
            few = max(OF_A_CLASS[0], AT_ONCE // (len(self._known) or 1))
        listed = self.all(few)
        owners = dict.fromkeys([*first, *listed])
        found: list[dict[int, list[Pattern]]] = []
        room = 0
        for owner in owners:
            if len(listed[owner]) > room:
                found.append({})
                room = AT_ONCE
            found[-1][owner] = listed[owner]
            room -= len(listed[owner])
        return found
