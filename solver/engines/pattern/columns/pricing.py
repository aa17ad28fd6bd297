"""The best pattern of every node class at given prices: one dynamic program for all.

V[point] is what a node at this point can still earn: nothing more, or the price of one
pod and what the point after it earns. Low points first. Everything is int64: sums are
exact, and the bound that follows from them holds whatever prices were chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from solver.engines.pattern.states.moves import Integers, expand_ranges
from solver.engines.pattern.states.steps import PartialSteps, Steps
from solver.errors import PriceOverflowError

MAX_VALUE = 1 << 61
NEVER = -(1 << 62)
MAX_PODS = 4096
"""More pods than a node takes."""
BLOCK_COST = 1000
"""Steps that cost as much as a block of them costs besides."""


PodCounts = tuple[tuple[int, int], ...]
"""(member kind, pods), ascending."""


class Prices(Struct, frozen=True):
    """What pods earn and nodes cost, as exact integers."""

    members: tuple[int, ...]
    """A pod, by member kind."""
    rank: int = 0
    """Cost of each rank of a chosen alternative."""
    slack: int = 0
    """Worth of each unit of slack value: of what is left over."""
    touched: int = 0
    """Cost of a node that gets any pod."""


class Pattern(Struct, frozen=True, cache_hash=True):
    """Pods that a node takes together."""

    steps: tuple[int, ...]
    """Indices into `Steps`, in order."""
    counts: PodCounts
    rank: int = 0
    slack: int = 0
    """Slack value that is left, less what it was before."""


EMPTY = Pattern((), ())


class PointValues:
    """V of some points, and the best steps from them; `slack_values`: of each."""

    def __init__(
        self, steps: Steps | PartialSteps, slack_values: Integers | None
    ) -> None:
        self._steps = steps
        self._slack_values = slack_values
        self._begins = [
            steps.first[points] - first for first, _, points in steps.blocks
        ]
        """For each block where, the steps of each point begin."""

    def find_best(
        self, prices: Prices
    ) -> tuple[Integers, list[tuple[Integers, Integers]]]:
        """Find what each root earns at most, and walks that do.

        A walk is (roots, the next step of each).

        Raises:
            PriceOverflowError: a sum could leave 64 bits.
        """
        values, stop_values = self.compute(prices), self._compute_stop_values(prices)
        # First take the best step of each root, where any earns more than no pod.
        points = self._steps.roots
        step, earned = self._find_best_steps(values, points, prices)
        earned = earned - stop_values[points] - prices.touched
        active = np.flatnonzero(earned > 0)
        step = step[active]
        # Then go on from the points they led to, until nothing more can be earned.
        walks: list[tuple[Integers, Integers]] = []
        while len(active):
            walks.append((active, step))
            points = self._steps.target[step]
            goes_on = values[points] > stop_values[points]
            active, points = active[goes_on], points[goes_on]
            step, _ = self._find_best_steps(values, points, prices)
        return np.maximum(earned, 0), walks

    def compute(self, prices: Prices) -> Integers:
        """Compute V.

        Raises:
            PriceOverflowError: a sum could leave 64 bits.
        """
        self._check_overflow(prices)
        steps = self._steps
        values = self._compute_stop_values(prices).copy()
        for (first, end, points), begins in zip(
            steps.blocks, self._begins, strict=True
        ):
            # Block by block: what was just computed is still in the processor's cache.
            part = slice(first, end)
            earned = values.take(steps.target[part])
            earned += self._compute_gains(prices, steps.member[part], steps.rank[part])
            best = np.maximum.reduceat(earned, begins)
            values[points] = np.maximum(values[points], best)
        return values

    def _find_best_steps(
        self, values: Integers, points: Integers, prices: Prices
    ) -> tuple[Integers, Integers]:
        """Find the first best step of each point, and what it earns; -1: none."""
        steps = self._steps
        best = np.full(len(points), NEVER, dtype=np.int64)
        chosen = np.full(len(points), -1, dtype=np.int64)
        position, step = expand_ranges(steps.first, points)
        if not len(step):
            return chosen, best
        gains = self._compute_gains(prices, steps.member[step], steps.rank[step])
        earned = values[steps.target[step]] + gains
        counts = steps.first[points + 1] - steps.first[points]
        with_steps = np.flatnonzero(counts)
        begins = (np.cumsum(counts) - counts)[with_steps]
        best[with_steps] = np.maximum.reduceat(earned, begins)
        # Of equally good steps take the first, so that one answer means one pattern.
        matching = np.where(earned == best[position], step, np.iinfo(np.int64).max)
        chosen[with_steps] = np.minimum.reduceat(matching, begins)
        return chosen, best

    def _compute_stop_values(self, prices: Prices) -> Integers:
        """Return what each point earns if no pod follows."""
        if self._slack_values is None or not prices.slack:
            return np.zeros(len(self._steps.first) - 1, dtype=np.int64)
        return prices.slack * self._slack_values

    @staticmethod
    def _compute_gains(prices: Prices, member: Integers, rank: Integers) -> Integers:
        """Return what steps earn by themselves, by their member kinds and ranks."""
        gains: Integers = np.array(prices.members, dtype=np.int64).take(member)
        return gains - prices.rank * rank if prices.rank else gains

    def _check_overflow(self, prices: Prices) -> None:
        largest = max(
            map(abs, (*prices.members, prices.rank, prices.touched)), default=0
        )
        slack = 0
        if self._slack_values is not None and self._slack_values.size:
            slack = abs(prices.slack) * int(np.abs(self._slack_values).max())
        if largest * MAX_PODS + slack > MAX_VALUE:
            raise PriceOverflowError("prices are too large for 64 bits")


class Pricing:
    """The program over one set of steps; `slack_values`: of each point."""

    def __init__(self, steps: Steps, slack_values: Integers | None = None) -> None:
        self._steps = steps
        self._slack_values = slack_values
        self._values = PointValues(steps, slack_values)
        self._patterns: dict[tuple[int, ...], Pattern] = {(): EMPTY}
        self._counts: dict[PodCounts, PodCounts] = {}
        """Each once: patterns of many classes have the same pods."""
        self.work = 1 + len(steps.source) + BLOCK_COST * len(steps.blocks)
        """Steps that are looked at for one set of prices."""

    def find_best(self, prices: Prices) -> tuple[Integers, list[Pattern]]:
        """Find what a node of each class earns at most, and a pattern that does.

        A node without pods earns 0.

        Raises:
            PriceOverflowError: a sum could leave 64 bits.
        """
        earned, walks = self._values.find_best(prices)
        return earned, self.collect_patterns(len(earned), walks)

    def compute_values(self, prices: Prices) -> Integers:
        """Compute V.

        Raises:
            PriceOverflowError: a sum could leave 64 bits.
        """
        return self._values.compute(prices)

    def among(self, owners: Sequence[int]) -> PartialPricing:
        """Price for some classes alone: only steps that they can come to cost time."""
        steps = PartialSteps(self._steps, owners)
        slack_values = self._slack_values
        if slack_values is not None:
            slack_values = slack_values[steps.points]
        return PartialPricing(self, steps, PointValues(steps, slack_values))

    def to_pattern(self, steps: tuple[int, ...]) -> Pattern:
        """Describe the steps of a node; equal ones get the same Pattern."""
        pattern = self._patterns.get(steps)
        if pattern is None:
            pattern = self._patterns[steps] = self._describe(steps)
        return pattern

    def collect_patterns(
        self, owners: int, walks: Iterable[tuple[Integers, Integers]]
    ) -> list[Pattern]:
        """Put the steps of each owner together; `walks`: (owners, their steps)."""
        steps_by_owner: list[list[int]] = [[] for _ in range(owners)]
        for active, steps in walks:
            for owner, step in zip(active.tolist(), steps.tolist(), strict=True):
                steps_by_owner[owner].append(step)
        return [self.to_pattern(tuple(steps)) for steps in steps_by_owner]

    def _describe(self, steps: tuple[int, ...]) -> Pattern:
        counts: dict[int, int] = {}
        rank = slack = 0
        for step in steps:
            member = int(self._steps.member[step])
            counts[member] = counts.get(member, 0) + 1
            rank += int(self._steps.rank[step])
        if self._slack_values is not None:
            first, last = self._steps.source[steps[0]], self._steps.target[steps[-1]]
            slack = int(self._slack_values[last] - self._slack_values[first])
        pods = tuple(sorted(counts.items()))
        return Pattern(steps, self._counts.setdefault(pods, pods), rank, slack)


class PartialPricing:
    """What `Pricing` finds, for some classes alone."""

    def __init__(
        self, whole: Pricing, steps: PartialSteps, values: PointValues
    ) -> None:
        self._whole = whole
        self._numbers = steps.steps
        self._values = values

    def find_best(self, prices: Prices) -> tuple[Integers, list[Pattern]]:
        """Find what a node of each of these classes earns at most, and how.

        Raises:
            PriceOverflowError: a sum could leave 64 bits.
        """
        earned, walks = self._values.find_best(prices)
        numbered = ((active, self._numbers[steps]) for active, steps in walks)
        return earned, self._whole.collect_patterns(len(earned), numbered)
