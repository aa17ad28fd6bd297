"""What the parts of nodes can come to: a deterministic automaton over slots.

A part that serves a multiset of slots may do so by several choices of devices. All of
them together are one state here (the subset construction), so which devices serve is
left open until the answer is written down, and a state has one successor by slot. A
card with NVIDIA's 14 MIG placements has 38 states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from solver.engines.pattern.states.graph import number_attributes
from solver.engines.pattern.states.placing import (
    Placement,
    StateReduction,
    list_placements,
)
from solver.engines.pattern.states.pruning import collect_device_demands
from solver.errors import NotPackableError, TooManyPlacementsError
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.shapes import NodeShape

Integers = NDArray[np.int64]
MOST_STATES = 20_000
MOST_WORK = 8_000_000
"""Steps to list ways to serve slots; see `PlacementList`."""
NONE = -1


class PartStates:
    """The states of all parts of a batch, numbered."""

    def __init__(
        self, demand: Demand, slots: Sequence[MemberKind], shapes: Iterable[NodeShape]
    ) -> None:
        """`shapes`: of the parts.

        Raises:
            NotPackableError: there are too many states, or a slot uses nothing up.
        """
        self.slots = slots
        self._reduction = StateReduction(
            attributes=number_attributes(demand),
            demands=collect_device_demands(slots),
            whole_kinds=0,
        )
        self._shapes: list[NodeShape] = []
        self._shape_numbers: dict[NodeShape, int] = {}
        self._targets: dict[tuple[int, int], tuple[tuple[int, Placement], ...]] = {}
        self._numbers: dict[frozenset[int], int] = {}
        self._members: list[frozenset[int]] = []
        self._work = 0
        self._reachable: dict[int, int] = {}
        self.starts = {shape: self._start(shape) for shape in dict.fromkeys(shapes)}
        """The state of each part that serves nobody."""
        self.after = self._follow()
        """[state, slot] -> the state after it, NONE where it has no place."""
        self.levels = self._sort()
        """States by the longest way to their end, the ends first."""
        self.most = self._count_most()
        """[state, slot] -> so many of the slot the state serves, and nothing else."""

    def __len__(self) -> int:
        return len(self._members)

    def value(self, prices: Integers) -> Integers:
        """Compute what each state can still serve at most, at prices of slots."""
        values = np.zeros(len(self) + 1, np.int64)
        for level in self.levels[1:]:
            after = self.after[level]
            gains = np.where(after >= 0, values[after] + prices, 0)
            values[level] = np.maximum(gains.max(axis=1), 0)
        return values[:-1]

    def best(self, start: int, prices: Integers, values: Integers) -> tuple[int, ...]:
        """List slots that are worth what `value` says, sorted; of equal ones more."""
        found: list[int] = []
        state = start
        while True:
            after = self.after[state]
            gains = np.where(after >= 0, values[after] + prices, NONE)
            slot = int(gains.argmax()) if len(gains) else 0
            if not len(gains) or after[slot] < 0 or gains[slot] < values[state]:
                return tuple(sorted(found))
            found.append(slot)
            state = int(after[slot])

    def state_after(self, start: int, slots: Iterable[int]) -> int:
        """Follow slots; NONE where they cannot all be served."""
        state = start
        for slot in slots:
            state = int(self.after[state, slot])
            if state < 0:
                return NONE
        return state

    def place(
        self, shape: NodeShape, slots: Sequence[int]
    ) -> tuple[tuple[int, ...], list[Placement]]:
        """Choose devices for slots, in their order.

        Returns:
            The order of the part's groups in its first state, and one placement a slot.
        """
        form = self._reduction.start(shape)
        reached = [{self._shape_numbers[form.shape]: ()}]
        ways: list[dict[int, tuple[int, Placement]]] = []
        for slot in slots:
            step: dict[int, tuple[int, Placement]] = {}
            for source in reached[-1]:
                for target, placement in self._list(source, slot):
                    step.setdefault(target, (source, placement))
            ways.append(step)
            reached.append(dict.fromkeys(step, ()))
        chosen: list[Placement] = []
        state = next(iter(reached[-1]))
        for step in reversed(ways):
            state, placement = step[state]
            chosen.append(placement)
        return form.order, chosen[::-1]

    def reachable(self, start: int) -> int:
        """Count the states that a state leads to, itself among them."""
        known = self._reachable.get(start)
        if known is None:
            seen, queue = {start}, [start]
            for state in queue:
                found = {int(target) for target in self.after[state] if target >= 0}
                queue += sorted(found - seen)
                seen |= found
            known = self._reachable[start] = len(seen)
        return known

    # --- building --------------------------------------------------------------------

    def _start(self, shape: NodeShape) -> int:
        form = self._reduction.start(shape)
        return self._number(frozenset({self._number_shape(form.shape)}))

    def _number_shape(self, shape: NodeShape) -> int:
        number = self._shape_numbers.setdefault(shape, len(self._shapes))
        if number == len(self._shapes):
            self._shapes.append(shape)
        return number

    def _number(self, shapes: frozenset[int]) -> int:
        number = self._numbers.setdefault(shapes, len(self._members))
        if number == len(self._members):
            if number >= MOST_STATES:
                raise NotPackableError(f"more than {MOST_STATES} states of parts")
            self._members.append(shapes)
        return number

    def _list(self, source: int, slot: int) -> tuple[tuple[int, Placement], ...]:
        found = self._targets.get((source, slot))
        if found is None:
            shape, kind = self._shapes[source], self.slots[slot]
            try:
                listed = list_placements(kind, shape, self._reduction)
            except TooManyPlacementsError as error:
                raise NotPackableError(str(error)) from error
            self._work += listed.work
            if self._work > MOST_WORK:
                raise NotPackableError(f"more than {MOST_WORK} steps to find states")
            found = tuple(
                (self._number_shape(placement.after), placement)
                for placement in listed.placements
            )
            self._targets[source, slot] = found
        return found

    def _follow(self) -> Integers:
        rows: list[list[int]] = []
        while len(rows) < len(self._members):
            source = len(rows)
            row = []
            for slot in range(len(self.slots)):
                targets = frozenset(
                    target
                    for shape in sorted(self._members[source])
                    for target, _ in self._list(shape, slot)
                )
                after = self._number(targets) if targets else NONE
                if after == source:
                    raise NotPackableError("pods that use nothing up")
                row.append(after)
            rows.append(row)
        return np.array(rows, np.int64).reshape(len(rows), len(self.slots))

    def _sort(self) -> list[Integers]:
        """Sort states so that each comes after all that it leads to."""
        height = np.zeros(len(self._members) + 1, np.int64)
        height[-1] = -1
        while True:
            grown = height.copy()
            if len(self.slots) and len(self._members):
                grown[:-1] = height[self.after].max(axis=1) + 1
            if (grown == height).all():
                break
            if grown.max() > len(self._members):
                raise NotPackableError("pods that use nothing up")
            height = grown
        own = height[:-1]
        top = int(own.max()) if len(own) else -1
        return [np.flatnonzero(own == level) for level in range(top + 1)]

    def _count_most(self) -> Integers:
        most = np.zeros((len(self) + 1, len(self.slots)), np.int64)
        columns = np.arange(len(self.slots))
        for level in self.levels:
            after = self.after[level]
            most[level] = np.where(after >= 0, most[after, columns] + 1, 0)
        return most[:-1]
