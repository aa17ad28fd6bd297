"""One gang after the other, each pod where it costs the least.

Where everything fits so, nothing is left to prove of who is in; and what is left over
is chosen pod by pod, which is a good start for the later goals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.engines.pattern.columns.integer_master import Solution
from solver.engines.pattern.columns.master_data import PatternUse
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.pricing import Prices
from solver.engines.pattern.states.moves import Integers

NEVER = -(1 << 62)
RANK_COST = 1 << 48
"""What a rank costs: more than any value that is left."""
StepsTaken = tuple[int, tuple[int, ...]]
"""(class, steps that a node of it took)."""


class Greedy:
    """Nodes at the points that they have come to; call `run` once."""

    def __init__(self, model: PatternModel) -> None:
        self._model = model
        steps = model.steps
        worth = model.slack_values
        if worth is None:
            worth = model.pricing.compute_values(Prices(model.first_prices))
        self._gain: Integers = (
            worth[steps.target] - worth[steps.source] - RANK_COST * steps.rank
        )
        """For each step, what a node is worth to others after it, less what it was."""
        members = range(model.data.members)
        self._steps_of = [np.flatnonzero(steps.member == m) for m in members]
        """For each member kind, the steps that place its pods."""
        self._node_counts = np.zeros(len(steps.states), dtype=np.int64)
        """For each point, the nodes that are there."""
        self._nodes: dict[int, dict[StepsTaken, int]] = {}
        """The same, by the steps that they took."""
        for owner, size in enumerate(model.data.sizes):
            self._add_nodes(int(steps.roots[owner]), (owner, ()), size)

    def run(self) -> Solution:
        """Take in gangs in the order of their urgency, until one does not fit."""
        demand, data = self._model.demand, self._model.data
        number_of = {kind: g for g, kind in enumerate(data.gangs)}
        by_urgency = sorted(
            (gang, kind) for kind, gangs in demand.gang_kinds.items() for gang in gangs
        )
        admitted = [0] * len(data.gangs)
        for _, kind in by_urgency:
            if not self._place_gang(kind.members):
                break
            admitted[number_of[kind]] += 1
        return Solution(tuple(admitted), tuple(self._collect_uses()))

    def _place_gang(self, members: Sequence[tuple[int, int]]) -> bool:
        """Place all pods of a gang; False: there is no room for one of them."""
        for member, pods in members:
            steps = self._steps_of[member]
            sources, gains = self._model.steps.source[steps], self._gain[steps]
            for _ in range(pods):
                worth = np.where(self._node_counts[sources] > 0, gains, NEVER)
                best = int(worth.argmax()) if len(steps) else -1
                if best < 0 or worth[best] == NEVER:
                    return False
                self._take_step(int(steps[best]))
        return True

    def _take_step(self, step: int) -> None:
        """Move the first node at a step's source to its target."""
        steps = self._model.steps
        source, target = int(steps.source[step]), int(steps.target[step])
        owner, taken = next(iter(self._nodes[source]))
        self._add_nodes(source, (owner, taken), -1)
        self._add_nodes(target, (owner, (*taken, step)), 1)

    def _add_nodes(self, point: int, taken: StepsTaken, count: int) -> None:
        counts = self._nodes.setdefault(point, {})
        total = counts.get(taken, 0) + count
        if total:
            counts[taken] = total
        else:
            del counts[taken]
        self._node_counts[point] += count

    def _collect_uses(self) -> list[PatternUse]:
        """Put nodes of a class that took the same steps together, as patterns."""
        pricing = self._model.pricing
        uses = [
            (owner, pricing.to_pattern(steps), count)
            for counts in self._nodes.values()
            for (owner, steps), count in counts.items()
            if steps
        ]
        return sorted(uses, key=lambda use: (use[0], use[1].steps))
