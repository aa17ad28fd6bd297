"""Neighborhoods with the patterns of a pool: what is decided anew at a time.

The first part is what a relaxed answer split; then classes are dealt at random. Parts
grow when small ones lead nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from solver.engines.pattern.columns.column_pool import ColumnPool
from solver.engines.pattern.columns.local_search import Neighborhood, PartialSolution
from solver.engines.pattern.columns.pricing import Pattern
from solver.engines.pseudo_random import shuffled

PATTERNS, GANG_KINDS = 150, 100
"""Patterns and gang kinds that are decided anew at a time, at first."""
CLASS_PATTERNS = 20
"""Of them, of one class at most: the more classes, the more may change hands."""
WORK = 0.15
"""Work for so many of them."""
MAX_SCALE = 16
"""How many times as large a neighborhood becomes at most."""
PATIENCE = 6
"""Neighborhoods without a better answer after which they become twice as large."""
MAX_NEIGHBORHOODS = 60


class PooledNeighborhoods:
    """Parts of an answer with the patterns of a pool.

    The order is the same for the same pool and the same reports.
    """

    def __init__(
        self,
        pool: ColumnPool,
        gang_kinds: int,
        first_classes: Sequence[int],
        first_gangs: Sequence[int] = (),
    ) -> None:
        """`first_classes`, `first_gangs`: what the first neighborhood is of."""
        self._pool = pool
        self._gang_kinds = gang_kinds
        self._first_gangs = tuple(first_gangs)
        self._scale, self._failures, self._number = 1, 0, 0
        self._dealt = self._deal_classes(first_classes)

    def propose(self, current: PartialSolution) -> Neighborhood | None:
        """Propose the next part; None: there were enough."""
        if self._number == MAX_NEIGHBORHOODS:
            return None
        if self._failures == PATIENCE and self._scale < MAX_SCALE:
            self._scale, self._failures = 2 * self._scale, 0
            self._dealt = self._deal_classes(())
        patterns_by_class = next(self._dealt, None)
        if patterns_by_class is None:
            self._dealt = self._deal_classes(())
            patterns_by_class = next(self._dealt, {})
        self._number += 1
        gangs = self._choose_gangs(current.short_gangs)
        is_whole = len(gangs) == self._gang_kinds and (
            sum(map(len, patterns_by_class.values())) == len(self._pool)
        )
        return Neighborhood(patterns_by_class, gangs, WORK * self._scale, is_whole)

    def report(
        self, _current: PartialSolution, *, is_better: bool, spent: float
    ) -> None:
        """Grow where nothing gets better."""
        del spent
        self._failures = 0 if is_better else self._failures + 1

    def _choose_gangs(self, wanted: Sequence[int]) -> frozenset[int]:
        """Choose the first gangs at first, then half wanted ones; others by chance."""
        most = GANG_KINDS * self._scale
        if self._number == 1:
            preferred = list(self._first_gangs)
        else:
            preferred = shuffled(wanted, self._number)[: most // 2]
        by_chance = shuffled(range(self._gang_kinds), self._number)
        chosen = list(dict.fromkeys((*preferred, *by_chance)))
        return frozenset(chosen[: max(most, len(preferred))])

    def _choose_patterns(self, patterns: list[Pattern]) -> list[Pattern]:
        """Choose some patterns of a class: the most promising, and others by chance."""
        others = range(CLASS_PATTERNS // 2, len(patterns))
        chosen = shuffled(others, self._number)[: CLASS_PATTERNS // 2]
        return [*patterns[: CLASS_PATTERNS // 2], *(patterns[n] for n in chosen)]

    def _deal_classes(self, first: Sequence[int]) -> Iterator[dict[int, list[Pattern]]]:
        """Deal all classes into groups by their patterns; `first` come together."""
        patterns_by_class = {
            owner: self._choose_patterns(patterns)
            for owner, patterns in self._pool.list_patterns().items()
        }
        most = PATTERNS * self._scale
        group = {
            owner: patterns_by_class[owner]
            for owner in first
            if owner in patterns_by_class
        }
        room = most - sum(map(len, group.values())) // 2
        others = [owner for owner in patterns_by_class if owner not in group]
        for owner in shuffled(others, self._number):
            patterns = patterns_by_class[owner]
            if group and len(patterns) > room:
                yield group
                group, room = {}, most
            group[owner] = patterns
            room -= len(patterns)
        if group:
            yield group
