"""Every pattern of a small graph, for batches that need no prices."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from solver.pattern.pricing import Pattern, Pricing
from solver.pattern.steps import Integers, Steps

Counts = tuple[int, ...]
"""Pods by member kind."""
WORK = 200_000
"""Patterns that are looked at, duplicates included."""


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
        found = []
        for root in self._steps.roots.tolist():
            listed = self._listed(root)
            if listed is None:
                return None
            found.append(
                [
                    pricing.pattern(way.steps())
                    for ways in listed.values()
                    for way in ways
                    if way.rest is not None
                ]
            )
        return found

    def _listed(self, point: int) -> dict[Counts, list[_Way]] | None:
        known = self._known.get(point)
        if known is not None:
            return known
        steps, kept = self._steps, self._kept
        value = 0 if kept is None else int(kept[point])
        found = {(0,) * len(self._most): [_Way(0, value)]}
        for row in range(int(steps.first[point]), int(steps.first[point + 1])):
            member, rank = int(steps.member[row]), int(steps.rank[row])
            rest = self._listed(int(steps.target[row]))
            if rest is None:
                return None
            for counts, ways in rest.items():
                if counts[member] == self._most[member]:
                    continue
                self._left -= len(ways)
                more = (*counts[:member], counts[member] + 1, *counts[member + 1 :])
                mine = found.setdefault(more, [])
                for way in ways:
                    _keep(mine, _Way(way.rank + rank, way.kept, row, way))
            if self._left < 0:
                return None
        self._known[point] = found
        return found


def _keep(ways: list[_Way], way: _Way) -> None:
    """Keep a way unless another has no more ranks and leaves no less."""
    if any(known.rank <= way.rank and known.kept >= way.kept for known in ways):
        return
    ways[:] = [w for w in ways if w.rank < way.rank or w.kept > way.kept]
    ways.append(way)


def maximal(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Leave out patterns that another one contains: enough for what counts pods."""
    counts = [dict(pattern.counts) for pattern in patterns]
    order = sorted(range(len(patterns)), key=lambda i: -sum(counts[i].values()))
    kept: list[int] = []
    for i in order:
        mine = counts[i].items()
        if not any(
            all(counts[k].get(member, 0) >= pods for member, pods in mine) for k in kept
        ):
            kept.append(i)
    return [patterns[i] for i in sorted(kept)]
