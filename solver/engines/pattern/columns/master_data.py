"""The batch and the nodes as numbers, for all masters: gangs, classes, kinds of pod."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from solver.engines.pattern.columns.pricing import Pattern
from solver.kinds.demand import GangKind

SCALE = 1 << 12
"""Prices are multiples of 1 / SCALE."""


class MasterData(Struct, frozen=True):
    """The batch and the nodes as the master programs see them."""

    gangs: tuple[GangKind, ...]
    available: tuple[int, ...]
    """Gangs of each kind."""
    members: int
    """How many kinds of member there are."""
    sizes: tuple[int, ...]
    """Nodes of each class."""
    clusters: tuple[tuple[int, ...], ...]
    """Classes whose nodes are in the same columns."""


PatternUse = tuple[int, Pattern, int]
"""(class, pattern, nodes that use it)."""


def count_pods(data: MasterData, gangs: Sequence[int]) -> tuple[int, ...]:
    """Count the pods of some gangs by member kind; `gangs`: how many of each kind."""
    pods = [0] * data.members
    for kind, count in zip(data.gangs, gangs, strict=True):
        for member, each in kind.members:
            pods[member] += each * count
    return tuple(pods)


def split_into_pods(
    data: MasterData, pods: Sequence[int], worth: Sequence[int]
) -> MasterData:
    """Make master data of gangs of one pod each: can the nodes take all of them?

    `pods` and `worth`: by member kind.
    """
    kinds = tuple(GangKind(0, worth[m], ((m, 1),)) for m in range(data.members))
    return MasterData(kinds, tuple(pods), data.members, data.sizes, data.clusters)
