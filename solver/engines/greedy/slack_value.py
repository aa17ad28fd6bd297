"""What is left on many nodes is worth (tier `leftover`), as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.engines.greedy.states import Integers
from solver.errors import PriceOverflowError
from solver.kinds.demand import ExpectedKind
from solver.kinds.slack import UNBOUNDED, value_of_room
from solver.problem.problem import DEVICE

UNLIMITED = 1 << 62
"""What a node has of a resource that nobody can run out of there."""
MOST_LEFT = 1 << 61
"""More of a resource is counted as so much: sums stay in 64 bits."""
MOST_VALUE = 1 << 60
"""Of one node."""


class SlackValue:
    """Values nodes by the room that their devices have, and by what is left besides."""

    def __init__(self, expected: Sequence[ExpectedKind]) -> None:
        self._expected = expected
        self._weight: Integers = np.array([kind.weight for kind in expected], np.int64)
        self._size: Integers = np.array([kind.size for kind in expected], np.int64)
        self._more: Integers = np.array([kind.more for kind in expected], np.int64)
        self._bounds: list[tuple[int, Integers, Integers]] = []
        """(column, the kinds that need it, how much)."""

    def limit_to(self, resources: Sequence[int]) -> None:
        """Return which resource of the query each column of what is left is."""
        for column, resource in enumerate(resources):
            needs = [kind.member.needs[resource] for kind in self._expected]
            need: Integers = np.array([min(n, UNLIMITED) for n in needs], np.int64)
            kinds = np.flatnonzero(need)
            if len(kinds):
                self._bounds.append((column, kinds, need[kinds]))

    def check(self, room: Integers, free: Integers) -> None:
        """Make sure that values stay in 64 bits; rooms only ever shrink.

        Raises:
            PriceOverflowError: they may not.
        """
        most = self.bound_room(room, free).max(axis=0, initial=0).tolist()
        pairs = zip(self._expected, most, strict=True)
        if sum(value_of_room(kind, pods) for kind, pods in pairs) > MOST_VALUE:
            raise PriceOverflowError

    def __call__(self, room: Integers, free: Integers) -> Integers:
        """Value nodes; `room` by node and expected kind, `free` by node and column."""
        thousandths = self.bound_room(room, free) * self._size
        worth = thousandths + self._more * np.minimum(thousandths, DEVICE)
        values: Integers = worth @ self._weight
        return values

    def bound_room(self, room: Integers, free: Integers) -> Integers:
        """Bound what the devices have room for by what is left besides."""
        room = room.copy()
        for column, kinds, need in self._bounds:
            left = free[:, column, np.newaxis]
            pods = np.where(left == UNLIMITED, UNBOUNDED, left // need)
            room[:, kinds] = np.minimum(room[:, kinds], pods)
        room[room == UNBOUNDED] = 0
        return room


def limit_left(left: int | None) -> int:
    """Return what is left of a resource as a number; None: nobody can run out of it."""
    return UNLIMITED if left is None else min(left, MOST_LEFT)


def take_needs(free: Integers, needs: Integers) -> Integers:
    """Take what a pod needs away, where there is a limit."""
    left: Integers = np.where(free == UNLIMITED, free, free - needs)
    return left
