"""Which devices of a node could still be had, as far as counters and sets tell.

A device that draws is available where each counter has what it draws, and each counter
set a compatibility group that it has, too. Of devices that draw the same at most so
many count together as the counters suffice for. A share of a device that is in use
draws no more (`Traits`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from solver.kinds.counting import PLENTY, bound_pods_by_values, sum_uses
from solver.kinds.demand import RequestAlternative
from solver.kinds.shapes import CounterSets, CounterShape, GroupShape
from solver.kinds.traits import Traits

Draws = tuple[tuple[int, int], ...]
"""(index into the node's counters, 1e-9 units)."""


class Available(Struct, frozen=True):
    """The devices that could be had, each for itself."""

    groups: tuple[GroupShape, ...]
    limits: dict[Draws, int]
    """How many exclusive devices of equal draws the counters suffice for."""

    def sum_uses(self, ask: RequestAlternative) -> int:
        """Bound the uses of all devices for one (sub)request."""
        if not self.limits:
            return sum_uses(self.groups, ask)
        return self._sum_uses(self.groups, ask)

    def bound_pods_by_values(
        self, scope: Sequence[tuple[RequestAlternative, int]]
    ) -> int:
        """Bound the pods of which each has devices of one value for all requests.

        `scope`: requests, each with the column that it is compared by.
        """
        if not self.limits:
            return bound_pods_by_values(scope, self.groups)
        values = {
            value
            for _, column in scope
            for group in self.groups
            for value in group.values[column]
        }
        return sum(
            min(
                self._sum_uses(self._having(column, value), ask) // ask.count
                for ask, column in scope
            )
            for value in values
        )

    def _having(self, column: int, value: int) -> tuple[GroupShape, ...]:
        return tuple(g for g in self.groups if value in g.values[column])

    def _sum_uses(self, groups: tuple[GroupShape, ...], ask: RequestAlternative) -> int:
        """Sum up the uses of some of the groups, those of equal draws together."""
        limited = Counter[Draws]()
        for group in groups:
            if _is_limited(group.traits) and group.mask >> ask.kind & 1:
                limited[group.traits.draws] += group.size
        others = tuple(group for group in groups if not _is_limited(group.traits))
        return sum_uses(others, ask) + sum(
            min(size, self.limits[draws]) for draws, size in limited.items()
        )


def list_available(
    groups: tuple[GroupShape, ...],
    counters: Sequence[CounterShape],
    sets: CounterSets,
) -> Available:
    """Leave out the devices that nobody could draw anything for any more."""
    if not any(group.traits.draws or group.traits.groups for group in groups):
        return Available(groups, {})
    kept = tuple(g for g in groups if _is_available(g.traits, counters, sets))
    draws = {g.traits.draws for g in kept if _is_limited(g.traits)}
    return Available(kept, {each: count_draws(each, counters) for each in draws})


def _is_limited(traits: Traits) -> bool:
    return bool(traits.draws) and traits.left is None


def _is_available(
    traits: Traits, counters: Sequence[CounterShape], sets: CounterSets
) -> bool:
    suffice = (counters[number].left >= amount for number, amount in traits.draws)
    return do_groups_agree(traits, sets) and all(suffice)


def do_groups_agree(traits: Traits, sets: CounterSets) -> bool:
    """Return True if each counter set has a compatibility group of the device left."""
    return all(
        sets[number][0] is None or not set(names).isdisjoint(sets[number][0] or ())
        for number, names in traits.groups
    )


def count_draws(draws: Draws, counters: Sequence[CounterShape]) -> int:
    """Count how often all of this can be drawn."""
    return min(
        (counters[n].left // amount for n, amount in draws if amount), default=PLENTY
    )
