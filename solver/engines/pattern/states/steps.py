"""Every step that a node of the batch may take, as arrays: one row a pod placed.

A point is a state with the levels of node resources that are left, capped at what the
state's devices could ever use: nodes with plenty share one point. Rows are sorted by
the height of their point (the most pods that may still come), then by point, so that
one pass from low to high sees every target before its source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from solver.engines.pattern.states.graph import Graph
from solver.engines.pattern.states.resources import Levels
from solver.errors import TooManyStepsError
from solver.kinds.demand import MemberKind

Integers = npt.NDArray[np.int64]
MAX_ROWS = 3_000_000
MAX_KEY = 1 << 62
AT_ONCE = 500_000
"""Rows that are followed together: what one breadth may take in memory."""


class Steps:
    """Arrays of equal length, and where each point's rows begin."""

    def __init__(
        self,
        graph: Graph,
        members: Sequence[MemberKind],
        levels: Levels,
        roots: Sequence[int],
    ) -> None:
        base = _Base(graph, members)
        reached = _Reached(base, levels, roots)
        heights = reached.heights(base)
        order = np.argsort(heights, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        self.states: Integers = reached.states[order]
        """Of each point."""
        self.levels: Integers = reached.levels[order]
        """Of each point: points x resources."""
        self.roots: Integers = place[reached.roots]
        """The points of the states that were begun with, in their order."""
        source, target = place[reached.source], place[reached.target]
        by = np.lexsort((reached.row, source))
        self.source, self.target = source[by], target[by]
        rows = reached.row[by]
        self.member, self.rank = base.member[rows], base.rank[rows]
        self.edge = base.edge[rows]
        points = np.arange(len(order) + 1)
        self.first: Integers = np.searchsorted(self.source, points).astype(np.int64)
        self.blocks = self._blocks(heights[order])
        """(first row, end, points with rows): of one height each, from low to high."""

    def _blocks(self, heights: Integers) -> list[tuple[int, int, Integers]]:
        found = []
        counts = np.diff(self.first)
        for height in np.unique(heights):
            points = np.flatnonzero((heights == height) & (counts > 0))
            if len(points):
                first, end = self.first[points[0]], self.first[points[-1] + 1]
                found.append((int(first), int(end), points))
        return found


class _Base:
    """The rows of the graph, without levels."""

    def __init__(self, graph: Graph, members: Sequence[MemberKind]) -> None:
        by_needs: dict[int, list[int]] = {}
        for member, needs in enumerate(graph.needs_of):
            by_needs.setdefault(needs, []).append(member)
        fits = [1 << member.fit for member in members]
        total = sum(len(by_needs.get(edge.needs, ())) for edge in graph.edges)
        if total > MAX_ROWS:
            raise TooManyStepsError(f"more than {MAX_ROWS} steps")
        found = [
            (edge.source, member, edge.target, edge.placement.rank, number)
            for number, edge in enumerate(graph.edges)
            for member in by_needs[edge.needs]
            if graph.states[edge.source].fits & fits[member]
        ]
        table = np.array(sorted(found), dtype=np.int64).reshape(-1, 5)
        self.source, self.member, self.target, self.rank, self.edge = table.T.copy()
        states = len(graph.states)
        first = np.searchsorted(self.source, np.arange(states + 1))
        self.first: Integers = first.astype(np.int64)
        self.has_loops = graph.has_loops
        self.deepest = graph.pods


def _heights(states: int, source: Integers, target: Integers) -> Integers:
    heights = np.zeros(states, dtype=np.int64)
    while True:
        raised = heights.copy()
        np.maximum.at(raised, source, heights[target] + 1)
        if np.array_equal(raised, heights):
            return heights
        heights = raised


class _Reached:
    """The points that node classes can come to, breadth first."""

    def __init__(self, base: _Base, levels: Levels, roots: Sequence[int]) -> None:
        width = len(levels.most)
        self._base = base
        self._needs = _table(levels.needs, width)
        self._most = _table(levels.most, len(base.first) - 1).T
        sizes = [max(caps, default=0) + 1 for caps in levels.most]
        radix = [min(prod(sizes[i + 1 :]), MAX_KEY) for i in range(width)]
        self._radix: Integers = np.array(radix, dtype=np.int64)
        self._endless = levels.endless and width > 0
        self._span = prod(sizes)
        if self._span * len(base.first) > MAX_KEY:
            raise TooManyStepsError("levels of node resources are too fine")
        self._numbers: dict[int, int] = {}
        self.states: Integers = np.zeros(0, dtype=np.int64)
        self.levels: Integers = np.zeros((0, width), dtype=np.int64)
        starts = _table(levels.starts, width)
        self.roots = self._numbered(np.array(roots, dtype=np.int64), starts)[0]
        self._expand()

    def _numbered(
        self, states: Integers, levels: Integers
    ) -> tuple[Integers, Integers]:
        """Number points, and say which of them are new."""
        keys = states * self._span + levels @ self._radix
        unique, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
        known = len(self._numbers)
        numbers = np.array(
            [
                self._numbers.setdefault(key, len(self._numbers))
                for key in unique.tolist()
            ],
            dtype=np.int64,
        )
        new = np.flatnonzero(numbers >= known)
        self.states = np.concatenate((self.states, states[index[new]]))
        self.levels = np.concatenate((self.levels, levels[index[new]]))
        return numbers[inverse.reshape(-1)], numbers[new]

    def _expand(self) -> None:
        base = self._base
        found: list[tuple[Integers, Integers, Integers]] = []
        waiting = deque((part, 0) for part in self._chunks(np.arange(len(self.states))))
        total = 0
        while waiting:
            points, depth = waiting.popleft()
            if depth == base.deepest:
                continue
            owner, rows = spread(base.first, self.states[points])
            before = self.levels[points][owner]
            left = before - self._needs[base.member[rows]]
            if self._endless:
                left = np.where(before == self._most[0], before, left)
            fits = (left >= 0).all(axis=1)
            owner, rows, left = owner[fits], rows[fits], left[fits]
            states = base.target[rows]
            left = np.minimum(left, self._most[states])
            targets, new = self._numbered(states, left)
            found.append((points[owner], targets, rows))
            total += len(rows)
            if total > MAX_ROWS:
                raise TooManyStepsError(f"more than {MAX_ROWS} steps")
            waiting.extend((part, depth + 1) for part in self._chunks(new))
        source, target, row = zip(*found, strict=True) if found else ((), (), ())
        empty = np.zeros(0, dtype=np.int64)
        self.source = np.concatenate((empty, *source))
        self.target = np.concatenate((empty, *target))
        self.row = np.concatenate((empty, *row))

    def _chunks(self, points: Integers) -> Iterator[Integers]:
        """Split points so that none of the parts has too many rows."""
        first, states = self._base.first, self.states[points]
        ends = np.cumsum(first[states + 1] - first[states])
        parts = np.flatnonzero(np.diff(ends // AT_ONCE)) + 1
        yield from (part for part in np.split(points, parts) if len(part))

    def heights(self, base: _Base) -> Integers:
        """Say of each point how many pods may still come, at most."""
        if base.has_loops:
            return _heights(len(self.states), self.source, self.target)
        states = len(base.first) - 1
        return _heights(states, base.source, base.target)[self.states]


def spread(first: Integers, states: Integers) -> tuple[Integers, Integers]:
    """List the rows of some states: (which of them, row)."""
    begins, counts = first[states], first[states + 1] - first[states]
    owner = np.repeat(np.arange(len(states)), counts)
    ends = np.cumsum(counts)
    offsets = np.arange(len(owner)) - np.repeat(ends - counts, counts)
    return owner, np.repeat(begins, counts) + offsets


def _table(rows: Sequence[Sequence[int]], width: int) -> Integers:
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)
