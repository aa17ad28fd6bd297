"""Nodes put together for the linear program: strata with sums of parts and amounts.

A relaxation: pods of a stratum share what all of its nodes have. Few strata are small
programs, so where nodes differ in everything they are one stratum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np
from msgspec import Struct

from solver.engines.packing.batch import UNLIMITED, PackingBatch
from solver.engines.packing.part_states import Integers

MOST_STRATA = 40


class Stratum(Struct, frozen=True, eq=False):
    """Nodes whose parts and amounts are added up."""

    nodes: Integers
    parts: tuple[tuple[int, int], ...]
    """(first state, parts of it)."""
    free: tuple[int | None, ...]
    """For each amount, the sum; None: no limit."""
    kinds: tuple[int, ...]
    """Pod kinds that may be on some of its nodes."""


def make_strata(batch: PackingBatch, amounts: Integers) -> list[Stratum]:
    """Put nodes together that have equal parts, amounts and pods, if these are few.

    `amounts`: [node, amount], what is added up.
    """
    number = range(len(batch.nodes))
    states = [tuple(sorted(parts)) for parts in batch.starts]
    fits = [batch.fits[:, node].tobytes() for node in number]
    free = [batch.free[node].tobytes() for node in number]
    for key in (
        [(states[n], fits[n], free[n]) for n in number],
        [(states[n], fits[n], b"") for n in number],
        [(tuple(sorted(set(states[n]))), fits[n], b"") for n in number],
        [(tuple(sorted(set(states[n]))), b"", b"") for n in number],
    ):
        groups = _group(key)
        if len(groups) <= MOST_STRATA:
            return [_stratum(batch, nodes, amounts) for nodes in groups]
    return [_stratum(batch, list(number), amounts)]


def _group(keys: list[tuple[tuple[int, ...], bytes, bytes]]) -> list[list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for node, key in enumerate(keys):
        groups.setdefault(key, []).append(node)
    return list(groups.values())


def _stratum(batch: PackingBatch, nodes: list[int], amounts: Integers) -> Stratum:
    rows = np.array(nodes, np.int64)
    parts = Counter(state for node in nodes for state in batch.starts[node])
    free = amounts[rows]
    sums = free.sum(axis=0)
    unlimited = np.asarray((free >= UNLIMITED).any(axis=0)).tolist()
    kinds = np.flatnonzero(batch.fits[:, rows].any(axis=1))
    return Stratum(
        nodes=rows,
        parts=tuple(sorted(parts.items())),
        free=tuple(
            None if open_ else int(amount)
            for amount, open_ in zip(sums.tolist(), unlimited, strict=True)
        ),
        kinds=tuple(int(kind) for kind in kinds),
    )
