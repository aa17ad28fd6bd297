"""The best pattern of every node class at given prices: one dynamic program for all.

V[point] is what a node at this point can still earn: nothing more, or the price of one
pod and what the point after it earns. Low points first. Everything is int64: sums are
exact, and the bound that follows from them holds whatever prices were chosen.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from solver.engines.pattern.states.steps import Integers, Steps, spread
from solver.errors import PriceOverflowError

MAX_VALUE = 1 << 61
NEVER = -(1 << 62)
PODS = 4096
"""More pods than a node takes."""
BLOCK = 1000
"""Rows that cost as much as a block of them costs besides."""


class Prices(Struct, frozen=True):
    """What pods earn and nodes cost, as exact integers."""

    members: tuple[int, ...]
    """A pod, by member kind."""
    rank: int = 0
    """Cost of each rank of a chosen alternative."""
    kept: int = 0
    """Worth of each unit of value that is left."""
    touched: int = 0
    """Cost of a node that gets any pod."""


class Pattern(Struct, frozen=True, cache_hash=True):
    """Pods that a node takes together."""

    steps: tuple[int, ...]
    """Rows, in order."""
    counts: tuple[tuple[int, int], ...]
    """(member kind, pods), ascending."""
    rank: int = 0
    kept: int = 0
    """Value of what is left, less what it was before."""


EMPTY = Pattern((), ())


class Pricing:
    """The program over one set of steps; `kept`: the value of each point."""

    def __init__(self, steps: Steps, kept: Integers | None = None) -> None:
        self._steps = steps
        self._kept = kept
        self._patterns: dict[tuple[int, ...], Pattern] = {(): EMPTY}
        self.work = 1 + len(steps.source) + BLOCK * len(steps.blocks)
        """Rows that are looked at for one set of prices."""

    def best(self, prices: Prices) -> tuple[Integers, list[Pattern]]:
        """Find what a node of each class earns at most, and a pattern that does.

        A node without pods earns 0.

        Raises:
            PriceOverflowError: a sum could leave 64 bits.
        """
        values, stop = self.values(prices), self._stop(prices)
        points = self._steps.roots
        row, earned = self._step(values, points, prices)
        earned = earned - stop[points] - prices.touched
        active = np.flatnonzero(earned > 0)
        row = row[active]
        walks: list[tuple[Integers, Integers]] = []
        while len(active):
            walks.append((active, row))
            points = self._steps.target[row]
            goes = values[points] > stop[points]
            active, points = active[goes], points[goes]
            row, _ = self._step(values, points, prices)
        return np.maximum(earned, 0), self._collected(walks)

    def values(self, prices: Prices) -> Integers:
        """Fill V.

        Raises:
            PriceOverflowError: a sum could leave 64 bits.
        """
        self._check(prices)
        steps = self._steps
        values = self._stop(prices).copy()
        gains = self._gains(prices, steps.member, steps.rank)
        for first, end, points in steps.blocks:
            earned = values[steps.target[first:end]] + gains[first:end]
            best = np.maximum.reduceat(earned, steps.first[points] - first)
            values[points] = np.maximum(values[points], best)
        return values

    def pattern(self, steps: tuple[int, ...]) -> Pattern:
        """Describe the steps of a node."""
        known = self._patterns.get(steps)
        if known is None:
            known = self._patterns[steps] = self._described(steps)
        return known

    def _step(
        self, values: Integers, points: Integers, prices: Prices
    ) -> tuple[Integers, Integers]:
        """Choose the first best row of each point, and say what it earns."""
        steps = self._steps
        best = np.full(len(points), NEVER, dtype=np.int64)
        chosen = np.full(len(points), -1, dtype=np.int64)
        owner, rows = spread(steps.first, points)
        if not len(rows):
            return chosen, best
        gains = self._gains(prices, steps.member[rows], steps.rank[rows])
        earned = values[steps.target[rows]] + gains
        some, begins = np.unique(owner, return_index=True)
        best[some] = np.maximum.reduceat(earned, begins)
        matching = np.where(earned == best[owner], rows, np.iinfo(np.int64).max)
        chosen[some] = np.minimum.reduceat(matching, begins)
        return chosen, best

    def _stop(self, prices: Prices) -> Integers:
        if self._kept is None or not prices.kept:
            return np.zeros(len(self._steps.states), dtype=np.int64)
        return prices.kept * self._kept

    @staticmethod
    def _gains(prices: Prices, member: Integers, rank: Integers) -> Integers:
        gains: Integers = np.array(prices.members, dtype=np.int64)[member]
        return gains - prices.rank * rank if prices.rank else gains

    def _collected(self, walks: list[tuple[Integers, Integers]]) -> list[Pattern]:
        steps: list[list[int]] = [[] for _ in self._steps.roots]
        for active, rows in walks:
            for owner, row in zip(active.tolist(), rows.tolist(), strict=True):
                steps[owner].append(row)
        return [self.pattern(tuple(rows)) for rows in steps]

    def _described(self, rows: tuple[int, ...]) -> Pattern:
        counts: dict[int, int] = {}
        rank = kept = 0
        for row in rows:
            member = int(self._steps.member[row])
            counts[member] = counts.get(member, 0) + 1
            rank += int(self._steps.rank[row])
        if self._kept is not None:
            first, last = self._steps.source[rows[0]], self._steps.target[rows[-1]]
            kept = int(self._kept[last] - self._kept[first])
        return Pattern(rows, tuple(sorted(counts.items())), rank, kept)

    def _check(self, prices: Prices) -> None:
        most = max(map(abs, (*prices.members, prices.rank, prices.touched)), default=0)
        kept = 0
        if self._kept is not None and self._kept.size:
            kept = abs(prices.kept) * int(np.abs(self._kept).max())
        if most * PODS + kept > MAX_VALUE:
            raise PriceOverflowError("prices are too large for 64 bits")
