"""Every step that a node of the batch may take, as arrays: one entry a pod placed.

A point is a state with the levels of node resources that are left, capped at what the
state's devices could ever use: nodes with plenty share one point. A step leads from a
point to a lower one. Points are sorted by their height (the most pods that may still
come), and steps by the point that they begin at, so that one pass from low to high
meets every target before its source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from solver.engines.pattern.states.attainable import (
    AttainableSums,
    find_attainable_sums,
)
from solver.engines.pattern.states.graph import Graph
from solver.engines.pattern.states.moves import (
    Integers,
    Moves,
    compute_heights,
    expand_ranges,
)
from solver.engines.pattern.states.resources import ResourceLevels
from solver.errors import TooManyStepsError
from solver.kinds.demand import MemberKind

MAX_STEPS = 3_000_000
MAX_KEY = 1 << 62
CHUNK_STEPS = 500_000
"""Steps that are followed together: what one breadth may take in memory."""


class Steps:
    """Arrays of points and of steps, and where each point's steps begin."""

    def __init__(
        self,
        graph: Graph,
        members: Sequence[MemberKind],
        levels: ResourceLevels,
        roots: Sequence[int],
    ) -> None:
        """`roots`: the states that nodes begin in, with the levels `levels.starts`."""
        # First find the points and the steps between them, numbered as they come.
        moves = Moves(graph, members, MAX_STEPS)
        search = _PointSearch(moves, levels, roots)
        # Then number the points anew, from low to high.
        heights = search.compute_heights()
        order = np.argsort(heights, kind="stable")
        new_numbers = np.empty(len(order), dtype=np.int64)
        new_numbers[order] = np.arange(len(order))
        self.states: Integers = search.states[order]
        """By point."""
        self.levels: Integers = search.levels[order]
        """Points x resources."""
        self.roots: Integers = new_numbers[search.roots]
        """The points of the states that were begun with, in their order."""
        # Finally sort the steps by their source.
        source, target = new_numbers[search.source], new_numbers[search.target]
        by_source = np.lexsort((search.move, source))
        self.source, self.target = source[by_source], target[by_source]
        """The points that each step begins and ends at."""
        step_moves = search.move[by_source]
        self.member, self.rank = moves.member[step_moves], moves.rank[step_moves]
        """For each step, the member kind of its pod, and what its alternatives rank."""
        self.edge = moves.edge[step_moves]
        """For each step, the edge of the graph that it follows."""
        points = np.arange(len(order) + 1)
        self.first: Integers = np.searchsorted(self.source, points).astype(np.int64)
        """For each point, its first step; one more entry at the end."""
        self.blocks = self._split_by_height(heights[order])
        """(first step, end, points with steps): of one height each, low to high."""

    def _split_by_height(self, heights: Integers) -> list[tuple[int, int, Integers]]:
        blocks = []
        counts = np.diff(self.first)
        for height in np.unique(heights):
            points = np.flatnonzero((heights == height) & (counts > 0))
            if len(points):
                first, end = self.first[points[0]], self.first[points[-1] + 1]
                blocks.append((int(first), int(end), points))
        return blocks


class PartialSteps:
    """The steps that some roots can come to, with points and steps numbered anew."""

    def __init__(self, steps: Steps, roots: Sequence[int]) -> None:
        """`roots`: which of the steps' roots."""
        # First mark what can be reached: every block leads to lower ones alone.
        begun = steps.roots[list(roots)]
        counts = np.diff(steps.first)
        is_reached = np.zeros(len(counts), dtype=np.bool_)
        is_reached[begun] = True
        is_taken = np.zeros(len(steps.target), dtype=np.bool_)
        for first, end, points in reversed(steps.blocks):
            is_taken[first:end] = np.repeat(is_reached[points], counts[points])
            is_reached[steps.target[first:end][is_taken[first:end]]] = True
        # Then leave out all else; what is left keeps its order.
        self.points: Integers = np.flatnonzero(is_reached)
        """For each point, its number in the whole."""
        self.steps: Integers = np.flatnonzero(is_taken)
        """For each step, its number in the whole."""
        new_numbers = np.cumsum(is_reached) - 1
        self.roots: Integers = new_numbers[begun]
        self.target: Integers = new_numbers.take(steps.target.take(self.steps))
        self.member: Integers = steps.member.take(self.steps)
        self.rank: Integers = steps.rank.take(self.steps)
        ends = np.cumsum(counts[self.points])
        self.first: Integers = np.concatenate((np.zeros(1, np.int64), ends))
        self.blocks = [
            (int(self.first[kept[0]]), int(self.first[kept[-1] + 1]), kept)
            for _, _, points in steps.blocks
            if len(kept := new_numbers[points[is_reached[points]]])
        ]


class _PointSearch:
    """The points that node classes can come to, found breadth first.

    It leaves `states` and `levels` by point, `roots` by node class, and of each step
    its `source` and `target` (points) and its `move`.
    """

    def __init__(
        self, moves: Moves, levels: ResourceLevels, roots: Sequence[int]
    ) -> None:
        resources = len(levels.caps)
        self._moves = moves
        self._needs = _to_table(levels.needs, resources)
        """Levels that each member kind takes: members x resources."""
        self._caps = _to_table(levels.caps, len(moves.first) - 1).T
        """Levels that each state can use at most: states x resources."""
        self._cap_is_endless = levels.cap_is_endless and resources > 0
        starts = _to_table(levels.starts, resources)
        self._sums = [] if levels.cap_is_endless else self._find_sums(starts)
        """By resource; none where what is left over counts."""
        # A point's key is one number: its state, then each level in a mixed radix.
        # Keys must fit into 64 bits, so levels that are too fine are refused.
        sizes = [max(caps, default=0) + 1 for caps in levels.caps]
        radix = [min(prod(sizes[i + 1 :]), MAX_KEY) for i in range(resources)]
        self._radix: Integers = np.array(radix, dtype=np.int64)
        self._keys_per_state = prod(sizes)
        if self._keys_per_state * len(moves.first) > MAX_KEY:
            raise TooManyStepsError("levels of node resources are too fine")
        self._numbers: dict[int, int] = {}
        """For each key, the number of its point, in the order of their discovery."""
        self.states: Integers = np.zeros(0, dtype=np.int64)
        self.levels: Integers = np.zeros((0, resources), dtype=np.int64)
        # The points of the node classes come first; all others follow from them.
        states = np.array(roots, dtype=np.int64)
        self.roots = self._number_points(states, self._round_down(states, starts))[0]
        self._expand()

    def _find_sums(self, starts: Integers) -> list[AttainableSums | None]:
        """Find what pods can come to of each resource in each state."""
        if not starts.size:
            return []
        heights = self._moves.compute_heights()
        return [
            find_attainable_sums(self._moves, heights, needs, most)
            for needs, most in zip(
                self._needs.T, starts.max(axis=0).tolist(), strict=True
            )
        ]

    def _round_down(self, states: Integers, levels: Integers) -> Integers:
        """Round levels down to what is as good: points that are alike become one."""
        levels = np.minimum(levels, self._caps[states])
        for resource, sums in enumerate(self._sums):
            if sums is not None:
                levels[:, resource] = sums.round_down(states, levels[:, resource])
        return levels

    def _number_points(
        self, states: Integers, levels: Integers
    ) -> tuple[Integers, Integers]:
        """Number points; returns the number of each, and which numbers are new."""
        keys = states * self._keys_per_state + levels @ self._radix
        unique, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
        first_new = len(self._numbers)
        numbers = np.array(
            [
                self._numbers.setdefault(key, len(self._numbers))
                for key in unique.tolist()
            ],
            dtype=np.int64,
        )
        new = np.flatnonzero(numbers >= first_new)
        self.states = np.concatenate((self.states, states[index[new]]))
        self.levels = np.concatenate((self.levels, levels[index[new]]))
        return numbers[inverse.reshape(-1)], numbers[new]

    def _expand(self) -> None:
        """Follow all moves from all points; as deep as the batch has pods."""
        moves = self._moves
        steps: list[tuple[Integers, Integers, Integers]] = []
        roots = np.arange(len(self.states))
        queue = deque((chunk, 0) for chunk in self._split_into_chunks(roots))
        total = 0
        while queue:
            points, depth = queue.popleft()
            if depth == moves.max_depth:
                continue
            # First try every move of every point: `origin` says at which of them.
            origin, move = expand_ranges(moves.first, self.states[points])
            # Then drop those whose pod needs more of a resource than is left.
            before = self.levels[points][origin]
            after = before - self._needs[moves.member[move]]
            if self._cap_is_endless:
                after = np.where(before == self._caps[0], before, after)
            fits = (after >= 0).all(axis=1)
            origin, move, after = origin[fits], move[fits], after[fits]
            # Finally round down what is left to what the new state's pods can use.
            states = moves.target[move]
            after = self._round_down(states, after)
            targets, new = self._number_points(states, after)
            steps.append((points[origin], targets, move))
            total += len(move)
            if total > MAX_STEPS:
                raise TooManyStepsError(f"more than {MAX_STEPS} steps")
            queue.extend((chunk, depth + 1) for chunk in self._split_into_chunks(new))
        source, target, taken = zip(*steps, strict=True) if steps else ((), (), ())
        empty = np.zeros(0, dtype=np.int64)
        self.source = np.concatenate((empty, *source))
        self.target = np.concatenate((empty, *target))
        self.move = np.concatenate((empty, *taken))

    def _split_into_chunks(self, points: Integers) -> Iterator[Integers]:
        """Split points so that none of the chunks has too many steps."""
        first, states = self._moves.first, self.states[points]
        ends = np.cumsum(first[states + 1] - first[states])
        borders = np.flatnonzero(np.diff(ends // CHUNK_STEPS)) + 1
        yield from (chunk for chunk in np.split(points, borders) if len(chunk))

    def compute_heights(self) -> Integers:
        """Bound for each point how many pods may still come.

        By its state alone, which is enough to sort by; but where pods leave a state as
        it is, only the levels of resources tell what is higher.
        """
        moves = self._moves
        if moves.has_loops:
            return compute_heights(len(self.states), self.source, self.target)
        return moves.compute_heights()[self.states]


def _to_table(rows: Sequence[Sequence[int]], width: int) -> Integers:
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)
