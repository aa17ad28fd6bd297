"""All nodes as rows of arrays: where a pod fits, and what it costs there.

A row is the nodes of one kind that nobody of the batch is on, or one node that was
used. A pod's loss on a row is what the room there is worth before, less that after.
Losses are kept by member kind and bounded again only for rows that changed. To weigh a
row is dear, so that is done in the order of these bounds, until none is less.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from solver.engines.greedy.slack_value import (
    UNLIMITED,
    SlackValue,
    limit_left,
    take_needs,
)
from solver.engines.greedy.states import DeviceStates, Integers, Option
from solver.engines.greedy.used_node import PlacedPod, UsedNode
from solver.kinds.counting import PLENTY
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind

IMPOSSIBLE = int(np.iinfo(np.int64).max)
"""The loss where there is no room."""


Look = tuple[int, tuple[int, ...]]
"""(state of its devices, what is left besides) of a node."""
FEW = 32
"""So many rows are weighed one by one."""


class _Losses(Struct):
    """What a pod of one member kind would lose, by row."""

    loss: Integers
    rank: Integers
    """Of the alternatives that it would take there."""
    is_weighed: NDArray[np.bool_]
    """True if that is so; else it loses as much at least, with its first choices."""
    seen: int = 0
    """How many changes this follows."""


class _Weighed(Struct, frozen=True):
    """What a pod would lose on nodes that are alike, and the best way to place it."""

    loss: int = IMPOSSIBLE
    rank: int = 0
    option: Option | None = None


class NodeTable:
    """The nodes of one batch: `place` changes them, `undo` takes that back."""

    def __init__(
        self,
        demand: Demand,
        kinds: Sequence[NodeKind],
        states: DeviceStates,
        *,
        weighs_all: bool = False,
    ) -> None:
        """Make a table without pods.

        `weighs_all`: every row is weighed for every pod while a graph of `states` may
        be searched, so that it has all that could have been; places are the same.

        Raises:
            PriceOverflowError: values could leave 64 bits.
        """
        self._states = states
        self._kinds = kinds
        self._weighs_all = weighs_all
        self._value_of = SlackValue(demand.expected)
        # First a row for each kind, with room for a row for each node.
        count = len(kinds)
        self._rows = count
        most = count + sum(len(kind.nodes) for kind in kinds)
        starts = [states.start(kind.shape) for kind in kinds]
        self._orders = [order for _, order in starts]
        self._kind_of: Integers = np.zeros(most, np.int64)
        """By row."""
        self._kind_of[:count] = range(count)
        self._state: Integers = np.zeros(most, np.int64)
        self._state[:count] = [state for state, _ in starts]
        self._unused = [len(kind.nodes) for kind in kinds]
        """For each kind, the nodes that were not used yet."""
        self._used: dict[int, UsedNode] = {}
        """By row."""
        # Then what the nodes have left besides devices, where that is limited at all.
        free = np.array(
            [[*map(limit_left, kind.shape.free)] for kind in kinds], np.int64
        )
        self._limited = np.flatnonzero((free != UNLIMITED).any(axis=0))
        self._free: Integers = np.zeros((most, len(self._limited)), np.int64)
        self._free[:count] = free[:, self._limited]
        needs = [[min(n, UNLIMITED) for n in m.needs] for m in demand.member_kinds]
        self._needs: Integers = np.array(needs, np.int64)[:, self._limited]
        self._value_of.limit_to(self._limited.tolist())
        self._value_of.check(states.room[self._state[:count]], self._free[:count])
        self._value: Integers = np.zeros(most, np.int64)
        """Of what each row has left."""
        self._value[:count] = self._value_of(
            states.room[self._state[:count]], self._free[:count]
        )
        self._has_pods = np.zeros(most, np.bool_)
        self._weighed: dict[tuple[int, int, bytes], _Weighed] = {}
        """By member kind, state and what is left besides."""
        self.is_exact = True
        """True if each pod so far was placed where it loses least."""
        self._losses: dict[int, _Losses] = {}
        self._changed: list[int] = list(range(count))
        """Rows, in the order in which they came to be or changed."""

    def clear(self) -> None:
        """Take all pods away; what their places cost is remembered."""
        for kind, left in enumerate(self._unused):
            if not left:
                self._changed.append(kind)
        self._unused = [len(kind.nodes) for kind in self._kinds]
        self._rows = len(self._kinds)
        self._used.clear()
        self._has_pods[:] = False

    @property
    def used(self) -> list[UsedNode]:
        """The nodes with pods."""
        return [node for node in self._used.values() if node.pods]

    @property
    def kind_of(self) -> Integers:
        """For each row, the node kind."""
        return self._kind_of[: self._rows]

    def count_room(self, member: int) -> Integers:
        """Bound the pods of a member kind on the nodes of each row, by counting."""
        rows = slice(0, self._rows)
        pods = self._states.bound_pods(member)[self._state[rows]]
        for column in np.flatnonzero(self._needs[member]):
            left = self._free[rows, column]
            bound = np.where(
                left == UNLIMITED, PLENTY, left // self._needs[member, column]
            )
            pods = np.minimum(pods, bound)
        return pods * self._count_nodes()

    def count_losses(self, member: int) -> tuple[Integers, Integers]:
        """Return what a pod would lose on a node of each row, and how many nodes it is.

        `IMPOSSIBLE` where it would not have its first choices.

        Raises:
            TooManyPlacementsError: on some node there are too many ways to place it.
        """
        losses, rows = self._weigh_all(member), slice(0, self._rows)
        first = np.where(losses.rank[rows] == 0, losses.loss[rows], IMPOSSIBLE)
        return first, self._count_nodes()

    def _count_nodes(self) -> Integers:
        nodes = np.ones(self._rows, np.int64)
        nodes[: len(self._unused)] = self._unused
        return nodes

    def place(self, member: int, among: Integers | None = None) -> UsedNode | None:
        """Place a pod where it loses least; None: nowhere is room.

        `among`: rows that it may be on. Of equal places one that has pods already is
        chosen, then the first by name.

        Raises:
            TooManyPlacementsError: on some node there are too many ways to place it.
        """
        row = self._find_row(member, among)
        option = None if row is None else self._weigh(member, row).option
        if row is None or option is None:
            return None
        placement, target = option
        node = self._used.get(row) or self._use_node(row)
        row, free = node.row, self._free[node.row].copy()
        before = int(self._state[row])
        node.pods.append(PlacedPod(member, placement, before, free))
        self._has_pods[row] = True
        self._set(row, target, take_needs(free, self._needs[member]))
        return node

    def undo(self, node: UsedNode) -> None:
        """Take the pod away that came to a node last."""
        pod = node.pods.pop()
        self._has_pods[node.row] = bool(node.pods)
        self._set(node.row, pod.state_before, pod.free_before)

    def _use_node(self, kind: int) -> UsedNode:
        """Take the next node out of a kind."""
        nodes = self._kinds[kind].nodes
        view = nodes[len(nodes) - self._unused[kind]]
        self._unused[kind] -= 1
        if not self._unused[kind]:
            self._changed.append(kind)
        row, self._rows = self._rows, self._rows + 1
        self._kind_of[row] = kind
        self._state[row] = self._state[kind]
        self._free[row] = self._free[kind]
        self._value[row] = self._value[kind]
        node = self._used[row] = UsedNode(row, view, self._orders[kind], [])
        return node

    def _set(self, row: int, state: int, free: Integers) -> None:
        self._state[row] = state
        self._free[row] = free
        self._value[row] = self._value_of(
            self._states.room[[state]], self._free[row : row + 1]
        )[0]
        self._changed.append(row)

    # --- where a pod loses least -----------------------------------------------------

    def _find_row(self, member: int, among: Integers | None) -> int | None:
        """Find the best row: weigh those that lose least at least, until one is it.

        Once too much was listed for this batch, the best of those weighed is taken.
        """
        weighs_all = self._weighs_all and not self._states.are_too_many
        losses = self._weigh_all(member) if weighs_all else self._follow(member)
        rows = np.arange(self._rows) if among is None else among
        count = 1
        while True:
            row = self._choose(losses, rows)
            if row is None or losses.is_weighed[row]:
                return row
            if self._states.is_spent:
                best = self._choose(losses, rows[losses.is_weighed[rows]])
                if best is not None:
                    self.is_exact = False
                    return best
                count = 1
            next_rows = np.array([row], np.int64)
            if count > 1:
                waiting = rows[~losses.is_weighed[rows]]
                order = np.lexsort((~self._has_pods[waiting], losses.loss[waiting]))
                next_rows = waiting[order[:count]]
            self._weigh_rows(member, losses, next_rows)
            count *= 2

    def _choose(self, losses: _Losses, rows: Integers) -> int | None:
        """Choose by what is known; of equal rows one with pods, then the first."""
        loss, rank = losses.loss[rows], losses.rank[rows]
        if rank.any():
            best_rank = rank[loss != IMPOSSIBLE].min(initial=IMPOSSIBLE)
            loss = np.where(rank == best_rank, loss, IMPOSSIBLE)
        least = loss.min(initial=IMPOSSIBLE)
        if least == IMPOSSIBLE:
            return None
        equal = rows[loss == least]
        used = equal[self._has_pods[equal]]
        return int(used[0] if len(used) else equal[0])

    def _weigh(self, member: int, row: int) -> _Weighed:
        """Weigh the ways to place a pod on one row; rows that are alike only once."""
        state, free = int(self._state[row]), self._free[row]
        key = (member, state, free.tobytes())
        weighed = self._weighed.get(key)
        if weighed is None:
            weighed = self._weighed[key] = self._weigh_anew(member, state, free)
        return weighed

    def _weigh_anew(self, member: int, state: int, free: Integers) -> _Weighed:
        after = take_needs(free, self._needs[member])
        options = self._states.options(member, state) if (after >= 0).all() else ()
        if not options:
            return _Weighed()
        targets = np.array([target for _, target in options])
        worth = self._value_of(
            self._states.room[targets],
            np.broadcast_to(after, (len(options), len(after))),
        )
        before = self._value_of(self._states.room[[state]], free[np.newaxis])
        best = int(worth.argmax())
        placement, target = options[best]
        loss = int(before[0] - worth[best])
        return _Weighed(loss, placement.rank, (placement, target))

    def _follow(self, member: int) -> _Losses:
        """Bound again what a pod would lose where something changed."""
        losses = self._losses.get(member)
        if losses is None:
            most = len(self._state)
            never = np.full(most, IMPOSSIBLE, np.int64)
            losses = _Losses(never, np.zeros(most, np.int64), np.ones(most, np.bool_))
            self._losses[member] = losses
        changed = set(self._changed[losses.seen :])
        rows = np.array(sorted(r for r in changed if r < self._rows), np.int64)
        losses.seen = len(self._changed)
        if len(rows):
            self._bound_losses(member, losses, rows)
        return losses

    def _bound_losses(self, member: int, losses: _Losses, rows: Integers) -> None:
        losses.loss[rows], losses.rank[rows] = IMPOSSIBLE, 0
        losses.is_weighed[rows] = True
        rows = rows[[self._has_nodes(row) for row in rows.tolist()]]
        after = take_needs(self._free[rows], self._needs[member])
        fits = (after >= 0).all(axis=1)
        rows, after = rows[fits], after[fits]
        states = self._state[rows].tolist()
        rooms = [self._states.bound_room(member, state) for state in states]
        has_place = [room is not None for room in rooms]
        rows, after = rows[has_place], after[has_place]
        if not len(rows):
            return
        listed = np.stack([room for room in rooms if room is not None])
        losses.loss[rows] = self._value[rows] - self._value_of(listed, after)
        losses.is_weighed[rows] = False

    def _weigh_all(self, member: int) -> _Losses:
        losses = self._follow(member)
        waiting = np.flatnonzero(~losses.is_weighed[: self._rows])
        self._weigh_rows(member, losses, waiting)
        return losses

    def _weigh_rows(self, member: int, losses: _Losses, rows: Integers) -> None:
        """Weigh rows that were bounded alone."""
        if len(rows) > FEW:
            self._count_losses(member, losses, rows)
        else:
            for row in rows.tolist():
                weighed = self._weigh(member, row)
                losses.loss[row], losses.rank[row] = weighed.loss, weighed.rank
        losses.is_weighed[rows] = True

    def _has_nodes(self, row: int) -> bool:
        return row >= len(self._unused) or self._unused[row] > 0

    def _count_losses(self, member: int, losses: _Losses, rows: Integers) -> None:
        # First every way to place the pod on each row: pairs of row and next state.
        after = take_needs(self._free[rows], self._needs[member])
        states, which = np.unique(self._state[rows], return_inverse=True)
        options = [self._states.options(member, int(state)) for state in states]
        losses.loss[rows] = IMPOSSIBLE
        counts = np.array([len(listed) for listed in options])[which]
        has_any = counts > 0
        rows, after, which = rows[has_any], after[has_any], which[has_any]
        counts = counts[has_any]
        if not len(rows):
            return
        targets_of = [np.array([t for _, t in listed], np.int64) for listed in options]
        targets = np.concatenate([targets_of[state] for state in which])
        # Then what is left after each, and of each row the best.
        worth = self._value_of(
            self._states.room[targets], np.repeat(after, counts, axis=0)
        )
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        losses.loss[rows] = self._value[rows] - np.maximum.reduceat(worth, starts)
        ranks = [listed[0][0].rank if listed else 0 for listed in options]
        losses.rank[rows] = np.array(ranks, np.int64)[which]
