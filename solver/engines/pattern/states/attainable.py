"""Amounts of a node resource that the pods of a state can come to, exactly.

With two devices left and pods that need 3 or 5 CPUs each, nodes with 6 and with 7 CPUs
are alike: pods use 0, 3, 5, 6, 8 or 10. So a level is rounded down to the nearest sum
that pods can come to. No answer is lost, and far fewer points are told apart.
"""

from __future__ import annotations

import numpy as np

from solver.engines.pattern.states.moves import (
    Integers,
    Moves,
    expand_ranges,
    list_ranges,
)

MAX_SUMS = 5_000_000
"""Sums that are made at most, equal ones counted as often as they are."""
MAX_KEY = 1 << 62


class AttainableSums:
    """For each state, the sums of what its pods may need of one resource, ascending."""

    def __init__(self, keys: Integers, most: int) -> None:
        """`keys`: state * (most + 1) + sum, ascending; `most`: the largest level."""
        self._keys, self._radix = keys, most + 1

    def round_down(self, states: Integers, levels: Integers) -> Integers:
        """Round each level down to what the pods of its state can come to."""
        first = states * self._radix
        found = np.searchsorted(self._keys, first + levels, side="right") - 1
        return self._keys[found] - first


def find_attainable_sums(
    moves: Moves, heights: Integers, needs: Integers, most: int
) -> AttainableSums | None:
    """Find the sums up to `most`; None: they are too many.

    `heights`: by state, above those of all states that its moves lead to; `needs`: by
    member kind.
    """
    states, radix = len(heights), most + 1
    if states * radix > MAX_KEY:
        return None
    source, target, need = _list_ways(moves, states, needs)
    # Low states first: each takes one pod more than those that it leads to. Sums are
    # kept in the order of their discovery: those of a state are from `first` to `end`.
    sums = np.zeros(0, dtype=np.int64)
    first, end = np.zeros(states, dtype=np.int64), np.zeros(states, dtype=np.int64)
    ways_of_state = np.searchsorted(source, np.arange(states + 1)).astype(np.int64)
    keys_by_height: list[Integers] = []
    made = 0
    for height in range(int(heights.max(initial=-1)) + 1):
        begun = np.flatnonzero(heights == height)
        _, ways = expand_ranges(ways_of_state, begun)
        begins, ends = first[target[ways]], end[target[ways]]
        made += int((ends - begins).sum())
        if made > MAX_SUMS:
            return None
        way, position = list_ranges(begins, ends)
        reached = sums[position] + need[ways][way]
        is_possible = reached <= most
        taken = source[ways][way] * radix + reached
        keys = np.unique(np.concatenate((begun * radix, taken[is_possible])))
        owners = keys // radix
        first[begun] = len(sums) + np.searchsorted(owners, begun)
        end[begun] = len(sums) + np.searchsorted(owners, begun, side="right")
        sums = np.concatenate((sums, keys % radix))
        keys_by_height.append(keys)
    return AttainableSums(np.sort(np.concatenate(keys_by_height)), most)


def _list_ways(
    moves: Moves, states: int, needs: Integers
) -> tuple[Integers, Integers, Integers]:
    """List (from state, to state, need), each once, by the state that they leave."""
    distinct, numbers = np.unique(needs, return_inverse=True)
    pairs = moves.source * states + moves.target
    ways = np.unique(pairs * len(distinct) + numbers.reshape(-1)[moves.member])
    pairs, numbers = np.divmod(ways, len(distinct))
    source, target = np.divmod(pairs, states)
    return source, target, distinct[numbers]
