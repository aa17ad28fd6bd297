"""The linear program of gangs within what all nodes have together.

Gangs are in by fractions; pods take from the sum of all nodes (`kinds/capacity.py`).
Its prices give a bound, and say which gangs are worth what they take. The bound is
summed in whole numbers from rounded prices (Lagrange), so nothing rests on GLOP.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from solver.engines.glop import Program
from solver.kinds.capacity import CapacityRow, list_capacity_rows
from solver.kinds.demand import Demand, GangKind
from solver.kinds.shapes import NodeKind

SCALE = 1 << 20
"""Prices are multiples of 1 / SCALE."""


class Relaxation(Struct, frozen=True):
    """What the gangs of one priority are worth at most, and what pods cost at that."""

    bound: int
    prices: tuple[int, ...]
    """A pod, by member kind, times SCALE."""


class CapacityProgram:
    """The program of one batch; `relax` a priority at a time."""

    def __init__(self, demand: Demand, kinds: Sequence[NodeKind]) -> None:
        self._gangs = demand.gang_kinds
        self._members = len(demand.member_kinds)
        self._rows = list_capacity_rows(demand, kinds)

    def relax(self, priority: int) -> Relaxation:
        """Decide fractions of the gangs of a priority, as if no others were."""
        gangs = {
            kind: len(of_kind)
            for kind, of_kind in self._gangs.items()
            if kind.priority == priority
        }
        # Each row is of a capacity of 1: numbers of devices and of bytes are far apart.
        program = Program([(None, 1.0) for _ in self._rows])
        for kind, available in gangs.items():
            entries = [
                (number, used / _capacity_of(row))
                for number, row in enumerate(self._rows)
                if (used := _use_of_gang(kind, row))
            ]
            program.add(float(kind.weight), entries, float(available))
        solved = program.solve()
        duals = solved.prices if solved else [0.0] * len(self._rows)
        worth = [max(0, round(dual * SCALE)) for dual in duals]
        prices = [0] * self._members
        for row, whole in zip(self._rows, worth, strict=True):
            for member, used in enumerate(row.uses):
                prices[member] += whole * used // _capacity_of(row)
        total = sum(worth)
        for kind, available in gangs.items():
            total += available * max(0, SCALE * kind.weight - cost_of(kind, prices))
        return Relaxation(total // SCALE, tuple(prices))


def cost_of(kind: GangKind, prices: Sequence[int]) -> int:
    """Add up the prices of a gang's pods."""
    return sum(prices[member] * pods for member, pods in kind.members)


def _use_of_gang(kind: GangKind, row: CapacityRow) -> int:
    return sum(row.uses[member] * pods for member, pods in kind.members)


def _capacity_of(row: CapacityRow) -> int:
    # Where nothing is left, a bound by one unit still holds.
    return max(1, row.capacity)
