"""One gang after the other, each pod where it costs the least.

Where everything fits so, nothing is left to prove of who is in; and what is left over
is chosen pod by pod, which is a good start for the later goals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.engines.pattern.columns.integer_master import Choice
from solver.engines.pattern.columns.layout import Layout
from solver.engines.pattern.columns.master import Used
from solver.engines.pattern.columns.pricing import Prices
from solver.engines.pattern.states.steps import Integers

NEVER = -(1 << 62)
RANK = 1 << 48
"""What a rank costs: more than any value that is left."""
Node = tuple[int, tuple[int, ...]]
"""(class, rows that a node took)."""


class Greedy:
    """Nodes at the points that they have come to, and the gangs that are in."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        steps = layout.steps
        worth = layout.kept
        if worth is None:
            worth = layout.pricing.values(Prices(layout.first))
        self._gain: Integers = (
            worth[steps.target] - worth[steps.source] - RANK * steps.rank
        )
        """What a step loses of what nodes are worth to others."""
        members = range(layout.side.members)
        self._rows = [np.flatnonzero(steps.member == m) for m in members]
        self._count = np.zeros(len(steps.states), dtype=np.int64)
        self._nodes: dict[int, dict[Node, int]] = {}
        for owner, size in enumerate(layout.side.sizes):
            self._put(int(steps.roots[owner]), (owner, ()), size)

    def choice(self) -> Choice:
        """Take in gangs in the order of their urgency, until one does not fit."""
        demand, side = self._layout.demand, self._layout.side
        numbers = {kind: g for g, kind in enumerate(side.gangs)}
        kinds = sorted(
            (gang, kind) for kind, gangs in demand.gang_kinds.items() for gang in gangs
        )
        taken = [0] * len(side.gangs)
        for _, kind in kinds:
            if not self._place(kind.members):
                break
            taken[numbers[kind]] += 1
        return Choice(tuple(taken), tuple(self._used()))

    def _place(self, members: Sequence[tuple[int, int]]) -> bool:
        """Place all pods of a gang; False: there is no room for one of them."""
        for member, pods in members:
            rows = self._rows[member]
            sources, gains = self._layout.steps.source[rows], self._gain[rows]
            for _ in range(pods):
                worth = np.where(self._count[sources] > 0, gains, NEVER)
                best = int(worth.argmax()) if len(rows) else -1
                if best < 0 or worth[best] == NEVER:
                    return False
                self._step(int(rows[best]))
        return True

    def _step(self, row: int) -> None:
        """Move the first node at a row's source to its target."""
        steps = self._layout.steps
        source, target = int(steps.source[row]), int(steps.target[row])
        owner, rows = next(iter(self._nodes[source]))
        self._put(source, (owner, rows), -1)
        self._put(target, (owner, (*rows, row)), 1)

    def _put(self, point: int, node: Node, count: int) -> None:
        here = self._nodes.setdefault(point, {})
        left = here.get(node, 0) + count
        if left:
            here[node] = left
        else:
            del here[node]
        self._count[point] += count

    def _used(self) -> list[Used]:
        pricing = self._layout.pricing
        found = [
            (owner, pricing.pattern(rows), count)
            for nodes in self._nodes.values()
            for (owner, rows), count in nodes.items()
            if rows
        ]
        return sorted(found, key=lambda item: (item[0], item[1].steps))
