"""Gangs of mixed size, drawn by seed from a list of kinds of pod."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from benchmarks.worlds.objects import submission
from contracts.gang import Member, MemberClaim, MemberNode
from contracts.messages import SubmitGang

MOST_PODS = 17
"""Of one gang of even size."""
MIXED = 0.2
"""Share of the gangs whose pods are of two kinds."""


GangSize = Callable[[random.Random], int]
"""Draws the pods of one gang."""


class PodKind(Struct, frozen=True, kw_only=True):
    """What one kind of pod needs."""

    claims: tuple[MemberClaim, ...]
    node: MemberNode = MemberNode()
    asked: int
    """How much of the supply it takes."""
    often: int = 1
    """How often it is drawn, among its kinds."""


def even_size(draw: random.Random) -> int:
    """Draw 1-17 pods, each as often."""
    return draw.randint(1, MOST_PODS)


def gangs(
    kinds: Sequence[PodKind],
    asked: int,
    draw: random.Random,
    *,
    first: int = 1,
    size: GangSize = even_size,
) -> Iterator[SubmitGang]:
    """Draw gangs until they ask for this much."""
    age = first
    while asked > 0:
        members = tuple(_members(kinds, draw, size(draw)))
        asked -= sum(kind.asked * count for kind, count in members)
        yield submission(
            age,
            *(
                Member(name=f"role-{i}", count=count, claims=k.claims, node=k.node)
                for i, (k, count) in enumerate(members)
            ),
        )
        age += 1


def _members(
    kinds: Sequence[PodKind], draw: random.Random, pods: int
) -> Iterator[tuple[PodKind, int]]:
    chosen = draw.choices(kinds, [kind.often for kind in kinds], k=2)
    second = draw.randint(1, pods - 1) if pods > 1 and draw.random() < MIXED else 0
    yield chosen[0], pods - second
    if second:
        yield chosen[1], second
