"""Bounds by counting: pods a node, and groups a domain, can hold at most.

floor(a / c) + floor(b / c) <= floor((a + b) / c), so pods that each need at least c of
something count as such pods: a node with 7 GPUs holds one pod of 4 or more, whatever
else it holds. Counted so, a slot or resource is one more *amount* of nodes; the same of
the sums of a domain makes rows about blocks.

Source: dual feasible functions, as in Fekete and Schepers, "New classes of fast lower
bounds for bin packing problems" (2001).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from solver.engines.blocks import Block
from solver.engines.packing.batch import UNLIMITED, PackingBatch
from solver.engines.packing.part_states import Integers

MOST_SIZES = 4
"""Sizes of pods by which a slot is counted."""
MOST_BLOCK_SIZES = 8
"""Sizes of blocks by which an amount of a domain is counted."""


class GangRow(Struct, frozen=True, eq=False):
    """sum over gang sorts of cost * gangs in <= total."""

    costs: tuple[int, ...]
    total: int


class Amounts(Struct, frozen=True, eq=False):
    """What pods need and nodes have: resources, and what is counted besides."""

    needs: Integers
    """[pod kind, amount]."""
    free: Integers
    """[node, amount]."""


def count_amounts(batch: PackingBatch) -> Amounts:
    """Count slots by the sizes of pods, and resources by halves and thirds."""
    needs, free = [*batch.needs.T], [*batch.free.T]
    for slot in range(batch.slot_counts.shape[1]):
        counts = batch.slot_counts[:, slot]
        sizes = sorted({int(count) for count in counts if count > 1}, reverse=True)
        for size in sizes[:MOST_SIZES]:
            needs.append(counts // size)
            free.append(batch.room[:, slot] // size)
    for resource in range(batch.needs.shape[1]):
        own = batch.free[:, resource]
        most = int(own.max()) if len(own) else 0
        if most >= UNLIMITED:
            continue
        for share in (2, 3):
            size = most // share + 1
            if (batch.needs[:, resource] >= size).any():
                needs.append(batch.needs[:, resource] // size)
                free.append(own // size)
    pods, nodes = len(batch.pods), len(batch.nodes)
    return Amounts(
        np.array(needs, np.int64).reshape(-1, pods).T,
        np.array(free, np.int64).reshape(-1, nodes).T,
    )


def count_kinds(batch: PackingBatch) -> Iterator[GangRow]:
    """Make rows about single kinds of pod, where nodes hold fewer than are asked."""
    for kind, rooms in enumerate(batch.first_rooms):
        room = int(rooms.sum())
        costs = tuple(total.get(kind, 0) for total in batch.totals)
        asked = zip(costs, batch.gangs_of, strict=True)
        if sum(cost * len(gangs) for cost, gangs in asked) > room:
            yield GangRow(costs, room)


def count_domains(batch: PackingBatch, amounts: Amounts) -> Iterator[GangRow]:
    """Make rows about the blocks that domains hold."""
    needs = np.concatenate([amounts.needs, batch.slot_counts], axis=1)
    free = np.concatenate([amounts.free, batch.room], axis=1)
    for label in batch.labels:
        blocks = [list(_list_blocks(sort.block, label)) for sort in batch.sorts]
        if not any(blocks):
            continue
        domain = batch.domain[label]
        known = domain >= 0
        count = int(domain.max()) + 1
        for column in range(needs.shape[1]):
            own = free[known, column]
            if (own >= UNLIMITED).any():
                continue
            sums = np.bincount(domain[known], own, minlength=count).astype(np.int64)
            sizes = [
                [(_size_of(batch, block, needs[:, column]), n) for block, n in of]
                for of in blocks
            ]
            distinct = sorted({size for of in sizes for size, _ in of if size > 1})
            for size in distinct[-MOST_BLOCK_SIZES:]:
                costs = tuple(sum(s // size * n for s, n in of) for of in sizes)
                yield GangRow(costs, int((sums // size).sum()))


def _list_blocks(block: Block, label: int) -> Iterator[tuple[Block, int]]:
    """Go through the blocks of a label in a gang, outermost ones alone."""
    if block.label == label:
        yield block, 1
        return
    for inner, count in block.inner:
        for found, often in _list_blocks(inner, label):
            yield found, often * count


def _size_of(batch: PackingBatch, block: Block, needs: Integers) -> int:
    return sum(int(needs[kind]) * pods for kind, pods in batch.total_of(block))
