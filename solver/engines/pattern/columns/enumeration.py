"""Every pattern of a small graph, for batches that need no prices."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from solver.engines.pattern.columns.pricing import Pattern, Pricing
from solver.engines.pattern.states.steps import Integers, Steps

Counts = tuple[int, ...]
"""Pods by member kind."""
WORK = 200_000
"""Patterns that are looked at, duplicates included."""
WIDE = 32
"""Patterns over more member kinds count by so many: each takes memory for all."""
COMPARED = 5_000_000
"""Pairs of patterns that are compared."""


class _Way(Struct, frozen=True):
    """One way to place some pods: the first step and the rest."""

    rank: int
    kept: int
    row: int = -1
    rest: _Way | None = None

    def steps(self) -> tuple[int, ...]:
        """List the rows."""
        found, way = [], self
        while way.rest is not None:
            found.append(way.row)
            way = way.rest
        return tuple(found)


class Listing:
    """Lists patterns from points, each point once."""

    def __init__(
        self, steps: Steps, most: Counts, kept: Integers | None = None
    ) -> None:
        self._steps = steps
        self._most = most
        self._kept = kept
        self._known: dict[int, dict[Counts, list[_Way]]] = {}
        self._left = WORK

    def patterns(self, pricing: Pricing) -> list[list[Pattern]] | None:
        """List all patterns of each node class; None: too many to list."""
        for point in range(len(self._steps.states)):  # targets come before sources
            if not self._list(point):
                return None
        return [
            [
                pricing.pattern(way.steps())
                for ways in self._known[root].values()
                for way in ways
                if way.rest is not None
            ]
            for root in self._steps.roots.tolist()
        ]

    def _list(self, point: int) -> bool:
        """List the ways from a point; False: too many."""
        steps, kept = self._steps, self._kept
        value = 0 if kept is None else int(kept[point])
        found = {(0,) * len(self._most): [_Way(0, value)]}
        each = 1 + len(self._most) // WIDE
        for row in range(int(steps.first[point]), int(steps.first[point + 1])):
            member, rank = int(steps.member[row]), int(steps.rank[row])
            for counts, ways in self._known[int(steps.target[row])].items():
                if counts[member] == self._most[member]:
                    continue
                self._left -= len(ways) * each
                more = (*counts[:member], counts[member] + 1, *counts[member + 1 :])
                mine = found.setdefault(more, [])
                for way in ways:
                    _keep(mine, _Way(way.rank + rank, way.kept, row, way))
            if self._left < 0:
                return False
        self._known[point] = found
        return True


def _keep(ways: list[_Way], way: _Way) -> None:
    """Keep a way unless another has no more ranks and leaves no less."""
    if any(known.rank <= way.rank and known.kept >= way.kept for known in ways):
        return
    ways[:] = [w for w in ways if w.rank < way.rank or w.kept > way.kept]
    ways.append(way)


def maximal(patterns: Sequence[Pattern]) -> list[Pattern] | None:
    """Leave out patterns that another one contains: enough for what counts pods.

    None: too many to compare.
    """
    counts = [dict(pattern.counts) for pattern in patterns]
    order = sorted(range(len(patterns)), key=lambda i: -sum(counts[i].values()))
    kept: list[int] = []
    compared = 0
    for i in order:
        compared += len(kept)
        if compared > COMPARED:
            return None
        mine = counts[i].items()
        if not any(
            all(counts[k].get(member, 0) >= pods for member, pods in mine) for k in kept
        ):
            kept.append(i)
    return [patterns[i] for i in sorted(kept)]
