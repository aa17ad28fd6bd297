"""What room a pod leaves at most, before it is known where its devices are taken.

    room after <= min(room before, (uses before - uses that it takes at least) / count)

by kind of request. To list the ways to place a pod is dear, and by this bound most
nodes lose more than the best one does. Constraints, counters and requests with
alternatives only ever cost more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from solver.kinds.counting import PLENTY, bound_uses
from solver.kinds.demand import MemberKind, RequestAlternative
from solver.kinds.shapes import GroupShape, NodeShape

Integers = NDArray[np.int64]


class RoomBound:
    """Bounds rooms on the states of one batch; nodes are made of few sorts of group."""

    def __init__(
        self, expected: Sequence[MemberKind], members: Sequence[MemberKind]
    ) -> None:
        self._sole = [_list_sole_asks(member) for member in members]
        asks = [
            (number, ask)
            for number, kind in enumerate(expected)
            for ask in kind.asks
            if ask.count and not ask.admin
        ]
        self._asks = {ask.kind: ask for _, ask in asks}
        columns = {kind: column for column, kind in enumerate(self._asks)}
        table: Integers = np.array(
            [(number, columns[ask.kind], ask.count) for number, ask in asks], np.int64
        ).reshape(-1, 3)
        self._column, self._count = table[:, 1], table[:, 2]
        self._owners, self._starts = np.unique(table[:, 0], return_index=True)
        self._uses_of_group: dict[GroupShape, Integers] = {}
        self._uses_of_state: dict[int, Integers] = {}
        self._taken_of_group: dict[tuple[GroupShape, int], Integers | None] = {}
        self._taken_of_state: dict[tuple[int, int], tuple[int, Integers]] = {}
        """By state and kind: all its uses, and what one takes of other kinds."""

    def __call__(
        self, member: int, state: int, shape: NodeShape, room: Integers
    ) -> Integers | None:
        """Bound the room by expected kind that a pod leaves of `room`; None: no place.

        `shape`: of the state.
        """
        taken: Integers = np.zeros(len(self._asks), np.int64)
        for ask in self._sole[member]:
            uses, of_one = self._count_taken(ask, state, shape)
            if uses < ask.count:
                return None
            taken += of_one * ask.count
        if not len(self._owners):
            return room
        left = np.maximum(self._count_uses(state, shape) - taken, 0)
        least = np.minimum.reduceat(left[self._column] // self._count, self._starts)
        after = room.copy()
        after[self._owners] = np.minimum(room[self._owners], least)
        return after

    def _count_uses(self, state: int, shape: NodeShape) -> Integers:
        """Bound the uses of a node's devices by expected kind of request."""
        uses = self._uses_of_state.get(state)
        if uses is None:
            uses = np.zeros(len(self._asks), np.int64)
            for group in shape.groups:
                own = self._uses_of_group.get(group)
                if own is None:
                    counted = [bound_uses(group, ask) for ask in self._asks.values()]
                    own = self._uses_of_group[group] = np.array(counted, np.int64)
                uses += own
            self._uses_of_state[state] = uses
        return uses

    def _count_taken(
        self, ask: RequestAlternative, state: int, shape: NodeShape
    ) -> tuple[int, Integers]:
        """Count the uses of a request's kind, and what one takes at least of others."""
        key = (state, ask.kind)
        taken = self._taken_of_state.get(key)
        if taken is None:
            total, of_one = 0, np.full(len(self._asks), PLENTY, np.int64)
            for group in shape.groups:
                uses = bound_uses(group, ask)
                if uses:
                    total += uses
                    np.minimum(of_one, self._count_taken_of(ask, group), out=of_one)
            taken = self._taken_of_state[key] = (total, of_one)
        return taken

    def _count_taken_of(self, ask: RequestAlternative, group: GroupShape) -> Integers:
        taken = self._taken_of_group.get((group, ask.kind))
        if taken is None:
            counted = [_count_taken(group, ask.kind, kind) for kind in self._asks]
            taken = np.array(counted, np.int64)
            self._taken_of_group[group, ask.kind] = taken
        return taken


def _list_sole_asks(member: MemberKind) -> list[RequestAlternative]:
    """List what a pod takes in any case: of requests without alternatives."""
    requests = map(member.alternatives, range(member.requests))
    sole = [member.asks[asks[0]] for asks in requests if len(asks) == 1]
    return [ask for ask in sole if ask.count and not (ask.all_devices or ask.admin)]


def _count_taken(group: GroupShape, kind: int, other: int) -> int:
    """Count the uses for another kind that one use of a group for a kind takes.

    Of shares at least so many whole ones, since rounding down never adds.
    """
    if not group.mask >> other & 1:
        return 0
    if group.traits.left is None:
        return 1
    costs = group.traits.costs
    pairs = zip(group.traits.left, costs[kind], costs[other], strict=False)
    bounds = [
        (left // of_other, own // of_other) for left, own, of_other in pairs if of_other
    ]
    if min((uses for uses, _ in bounds), default=PLENTY) >= PLENTY:
        return 0
    return min(taken for _, taken in bounds)
