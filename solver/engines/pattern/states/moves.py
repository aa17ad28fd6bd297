"""The ways from state to state that the pods of a batch may take, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from solver.engines.pattern.states.graph import Graph
from solver.errors import TooManyStepsError
from solver.kinds.demand import MemberKind

Integers = npt.NDArray[np.int64]


class Moves:
    """The edges of the graph, once for each member kind that may take them.

    A move becomes a step where the levels of node resources allow it.
    """

    def __init__(self, graph: Graph, members: Sequence[MemberKind], limit: int) -> None:
        """Raise TooManyStepsError where there are more than `limit`."""
        members_by_need: dict[int, list[int]] = {}
        for member, need in enumerate(graph.device_needs_of):
            members_by_need.setdefault(need, []).append(member)
        # Count before anything is made: a refusal should cost no memory.
        total = sum(
            len(members_by_need.get(edge.device_need, ())) for edge in graph.edges
        )
        if total > limit:
            raise TooManyStepsError(f"more than {limit} steps")
        fits = [1 << member.fit for member in members]
        rows = [
            (edge.source, member, edge.target, edge.placement.rank, number)
            for number, edge in enumerate(graph.edges)
            for member in members_by_need[edge.device_need]
            if graph.states[edge.source].fits & fits[member]
        ]
        table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 5)
        self.source, self.member, self.target, self.rank, self.edge = table.T.copy()
        states = len(graph.states)
        first = np.searchsorted(self.source, np.arange(states + 1))
        self.first: Integers = first.astype(np.int64)
        """For each state, its first move; one more entry at the end."""
        self.has_loops = graph.has_loops
        self.max_depth = graph.pods

    def compute_heights(self) -> Integers:
        """Bound for each state how many pods may still come; there must be no loops."""
        return compute_heights(len(self.first) - 1, self.source, self.target)


def compute_heights(count: int, source: Integers, target: Integers) -> Integers:
    """Find the longest way down from each of `count` states or points."""
    heights = np.zeros(count, dtype=np.int64)
    while True:
        raised = heights.copy()
        np.maximum.at(raised, source, heights[target] + 1)
        if np.array_equal(raised, heights):
            return heights
        heights = raised


def expand_ranges(first: Integers, keys: Integers) -> tuple[Integers, Integers]:
    """List the numbers in the ranges of some keys: first[key] to first[key + 1].

    Returns for each number the position of its key in `keys`, and the number itself.
    """
    return list_ranges(first[keys], first[keys + 1])


def list_ranges(begins: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """List the numbers from each begin to its end, with the position of the range."""
    counts = ends - begins
    position = np.repeat(np.arange(len(counts)), counts)
    skipped = np.cumsum(counts) - counts
    return position, np.arange(len(position)) + np.repeat(begins - skipped, counts)
