"""Greedy answers: gangs in several orders, each pod where least is left.

No order is best everywhere, so all are tried and the best answer counts: by age, by
weight, by weight for what a gang takes of what is scarce, the hardest to place first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from solver.engines.blocks import Block
from solver.engines.packing.batch import UNLIMITED, PackingBatch
from solver.engines.packing.loads import Floats, Loads, Scale

EVEN = 1 << 20
"""What all of a resource counts, where each counts the same."""
Order = Callable[[int], tuple[float, ...]]
"""Sorts gangs by their number; the least comes first."""


class Density:
    """What gangs are worth for what they take, at prices of slots and amounts."""

    def __init__(self, batch: PackingBatch, costs: Floats) -> None:
        """`costs`: of each pod kind."""
        taken = [
            sum(costs[kind] * pods for kind, pods in total.items())
            for total in batch.totals
        ]
        self.taken: Floats = np.maximum(np.array(taken, np.float64), 1e-9)
        """By gang sort."""
        self.of_sort: Floats = batch.weights / self.taken


def even_scale(batch: PackingBatch) -> Scale:
    """Weigh what is left by the share of all that there is."""
    room = np.maximum(batch.room.sum(axis=0), 1)
    prices = np.maximum(EVEN * len(batch.nodes) // room, 1).astype(np.int64)
    free = np.where(batch.free >= UNLIMITED, 0, batch.free)
    sums = np.maximum(free.sum(axis=0), 1)
    amounts = EVEN * len(batch.nodes) / sums.astype(np.float64)
    amounts[free.sum(axis=0) == 0] = 0.0
    return Scale(prices, amounts)


def devices_scale(batch: PackingBatch) -> Scale:
    """Weigh what is left of devices, and of the rest only where that is equal."""
    even = even_scale(batch)
    return Scale(even.prices, even.amounts * 1e-6)


def costs_at(batch: PackingBatch, scale: Scale) -> Floats:
    """Compute what a pod of each kind takes, weighed like what is left of nodes."""
    return batch.slot_counts @ scale.prices + batch.needs @ scale.amounts


def list_orders(batch: PackingBatch, density: Density) -> dict[str, Order]:
    """List the orders in which gangs are taken; all of them by priority first."""
    sorts = batch.sorts
    size = density.taken
    devices = [
        sum(int(batch.slot_counts[kind].sum()) * pods for kind, pods in total.items())
        for total in batch.totals
    ]
    pods = [sum(total.values()) for total in batch.totals]
    unit = [_largest_block(batch, sort) for sort in range(len(sorts))]
    widest = [
        max((float(batch.size_of[kind]) for kind in total), default=0.0)
        for total in batch.totals
    ]

    def by(keys: Callable[[int], tuple[float, ...]]) -> Order:
        def order(gang: int) -> tuple[float, ...]:
            sort = batch.sort_of[gang]
            return (-sorts[sort].priority, *keys(sort), gang)

        return order

    weight = batch.weights
    return {
        "weight for what is scarce": by(lambda s: (-density.of_sort[s], s)),
        "hardest first": by(lambda s: (-widest[s], -unit[s], -float(weight[s]), s)),
        "weight": by(lambda s: (-float(weight[s]),)),
        "weight, alike together": by(lambda s: (-float(weight[s]), s)),
        "age": by(lambda _: ()),
        "weight for devices": by(
            lambda s: (-float(weight[s]) / max(devices[s], 1e-9), -unit[s], -pods[s])
        ),
        "largest first": by(lambda s: (-size[s], s)),
    }


def _largest_block(batch: PackingBatch, sort: int) -> float:
    """Count the pods that a gang must have in one domain; of no domain: 0."""

    def largest(block: Block) -> int:
        own = sum(block.total.values()) if block.label >= 0 else 0
        return max([own, *(largest(inner) for inner, _ in block.inner)])

    return float(largest(batch.sorts[sort].block))


def first_of(batch: PackingBatch, aimed: frozenset[int], order: Order) -> Order:
    """Take some gangs of a priority before all others of it."""

    def first(gang: int) -> tuple[float, ...]:
        priority = batch.sorts[batch.sort_of[gang]].priority
        return (-priority, float(gang not in aimed), *order(gang))

    return first


def construct(
    batch: PackingBatch, order: Order, scale: Scale, gangs: Iterable[int]
) -> Loads:
    """Take gangs in, in this order, each if there is room for all of it."""
    loads = Loads(batch, scale)
    fill(loads, sorted(gangs, key=order), batch)
    return loads


def fill(loads: Loads, gangs: Iterable[int], batch: PackingBatch) -> None:
    """Take in what still fits; of gangs that are alike none after one that did not."""
    failed = set[int]()
    for gang in gangs:
        sort = batch.sort_of[gang]
        if sort not in failed and not loads.place_gang(gang):
            failed.add(sort)
