"""Every pattern of a small graph, for batches that need no prices."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from solver.engines.pattern.columns.pricing import Pattern, Pricing
from solver.engines.pattern.states.moves import Integers
from solver.engines.pattern.states.steps import Steps

Counts = tuple[int, ...]
"""Pods by member kind."""
MAX_WORK = 200_000
"""Patterns that are looked at, duplicates included."""
WIDE = 32
"""Patterns over more member kinds count by so many: each takes memory for all."""
MAX_COMPARED = 5_000_000
"""Pairs of patterns that are compared."""


class _StepList(Struct, frozen=True):
    """One way to place some pods: the first step and the rest."""

    rank: int
    slack: int
    """Slack value of the point where it ends."""
    step: int = -1
    rest: _StepList | None = None
    """None: no pod at all."""

    def to_steps(self) -> tuple[int, ...]:
        """List the steps, in order."""
        steps, current = [], self
        while current.rest is not None:
            steps.append(current.step)
            current = current.rest
        return tuple(steps)


class PatternEnumeration:
    """Enumerates patterns from points, each point once."""

    def __init__(
        self, steps: Steps, most: Counts, slack_values: Integers | None = None
    ) -> None:
        """`most`: pods of the batch; `slack_values`: of each point, if they matter."""
        self._steps = steps
        self._most = most
        self._slack_values = slack_values
        self._by_point: dict[int, dict[Counts, list[_StepList]]] = {}
        self._remaining_work = MAX_WORK

    def run(self, pricing: Pricing) -> list[list[Pattern]] | None:
        """List all patterns of each node class; None: too many to list."""
        for point in range(len(self._steps.states)):  # targets come before sources
            if not self._enumerate_from(point):
                return None
        return [
            [
                pricing.to_pattern(steps.to_steps())
                for step_lists in self._by_point[root].values()
                for steps in step_lists
                if steps.rest is not None
            ]
            for root in self._steps.roots.tolist()
        ]

    def _enumerate_from(self, point: int) -> bool:
        """Enumerate what may follow from a point; False: too much."""
        steps, slack_values = self._steps, self._slack_values
        slack = 0 if slack_values is None else int(slack_values[point])
        # No pod at all comes first; then each step, with whatever may follow it.
        by_counts = {(0,) * len(self._most): [_StepList(0, slack)]}
        cost = 1 + len(self._most) // WIDE
        for step in range(int(steps.first[point]), int(steps.first[point + 1])):
            member, rank = int(steps.member[step]), int(steps.rank[step])
            for counts, rests in self._by_point[int(steps.target[step])].items():
                if counts[member] == self._most[member]:
                    continue
                self._remaining_work -= len(rests) * cost
                more = (*counts[:member], counts[member] + 1, *counts[member + 1 :])
                undominated = by_counts.setdefault(more, [])
                for rest in rests:
                    steps_from_here = _StepList(
                        rest.rank + rank, rest.slack, step, rest
                    )
                    _add_undominated(undominated, steps_from_here)
            if self._remaining_work < 0:
                return False
        self._by_point[point] = by_counts
        return True


def _add_undominated(undominated: list[_StepList], new: _StepList) -> None:
    """Add steps unless others for equal pods have no more ranks and leave no less."""
    if any(o.rank <= new.rank and o.slack >= new.slack for o in undominated):
        return
    undominated[:] = [
        other
        for other in undominated
        if other.rank < new.rank or other.slack > new.slack
    ]
    undominated.append(new)


def keep_maximal(patterns: Sequence[Pattern]) -> list[Pattern] | None:
    """Leave out patterns that another one contains: enough for what counts pods.

    None: too many to compare.
    """
    counts = [dict(pattern.counts) for pattern in patterns]
    largest_first = sorted(range(len(patterns)), key=lambda i: -sum(counts[i].values()))
    maximal: list[int] = []
    compared = 0
    for i in largest_first:
        compared += len(maximal)
        if compared > MAX_COMPARED:
            return None
        pods_by_member = counts[i].items()
        if not any(
            all(
                counts[larger].get(member, 0) >= pods for member, pods in pods_by_member
            )
            for larger in maximal
        ):
            maximal.append(i)
    return [patterns[i] for i in sorted(maximal)]
