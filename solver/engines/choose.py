"""Which engine is made for a batch, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec import Struct

from solver.engines.goals import EngineResult
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.shapes import NodeKind
from solver.tiers import Tier

DIRECT, PACKING, PATTERN = "direct", "packing", "pattern"
WHOLE = 5_000
"""Pods times nodes of a batch that the direct model decides as a whole."""
MOST_COUNTED_RULES = 8
"""Each is one more amount of every state: with many, states are counted so coarsely
that no pod fits."""


class EngineChoice(Struct, frozen=True):
    """An engine, and why it was chosen."""

    engine: str = ""
    reason: str = ""


Decided = tuple[EngineChoice, EngineResult]
"""An engine, and its answer to a batch."""


class Decide(Protocol):
    """Asks the engine that is made for a batch."""

    def __call__(
        self,
        demand: Demand,
        kinds: tuple[NodeKind, ...],
        last: Tier | None = None,
    ) -> Decided:
        """Decide; `last`: the last tier to pursue, None: the one of the Problem."""


def choose_engine(demand: Demand, kinds: tuple[NodeKind, ...]) -> EngineChoice:
    """Choose an engine: patterns are of single nodes, and of pods that use them up.

    A pod that uses nothing up fits a node any number of times, so its patterns would
    have no end.
    """
    if any(kind.admin for kind in demand.query.requests):
        return EngineChoice(DIRECT, "admin access takes nothing")
    if len(demand.query.counted) > MOST_COUNTED_RULES:
        return EngineChoice(DIRECT, "many rules between pods")
    if demand.is_elastic:
        return EngineChoice(DIRECT, "gangs that may be in with fewer pods")
    if demand.gang_rules:
        return EngineChoice(DIRECT, "rules of gangs that span pods")
    if demand.query.domains:
        return EngineChoice(DIRECT, "rules between pods on several nodes")
    if any(group.identity for kind in kinds for group in kind.shape.groups):
        return EngineChoice(DIRECT, "devices that several nodes see")
    if next(_find_endless(demand, kinds), None) is not None:
        return EngineChoice(DIRECT, "pods that use nothing up")
    return EngineChoice(PATTERN, "every rule is about one node")


def count_pairs(demand: Demand, kinds: tuple[NodeKind, ...]) -> int:
    """Count pods times nodes: what the direct model grows with."""
    return sum(demand.pods) * sum(len(kind.nodes) for kind in kinds)


def is_small(demand: Demand, kinds: tuple[NodeKind, ...]) -> bool:
    """True if the direct model decides a batch as a whole, if it decides it."""
    return count_pairs(demand, kinds) <= WHOLE


def find_gangs_beyond(demand: Demand, kinds: tuple[NodeKind, ...]) -> frozenset[int]:
    """Find the gangs of which some pod is beyond patterns, rules apart."""
    seen_by_several = frozenset(
        number
        for kind in kinds
        for group in kind.shape.groups
        if group.identity
        for number in range(len(demand.query.requests))
        if group.mask >> number & 1
    )
    endless = set(_find_endless(demand, kinds))
    beyond = {
        number
        for number, member in enumerate(demand.member_kinds)
        if number in endless
        or any(ask.admin or ask.kind in seen_by_several for ask in member.asks)
    }
    return frozenset(
        gang
        for kind, gangs in demand.gang_kinds.items()
        if any(member in beyond for member, _ in kind.members)
        for gang in gangs
    )


def _find_endless(demand: Demand, kinds: tuple[NodeKind, ...]) -> Iterator[int]:
    """Go through the member kinds whose pods use nothing up on some node."""
    asked = {ask.kind for member in demand.member_kinds for ask in member.asks}
    inexhaustible = _inexhaustible_requests(kinds, asked)
    for number, member in enumerate(demand.member_kinds):
        if not _is_bounded_by_devices(member, inexhaustible) and any(
            not any(
                need and free is not None
                for need, free in zip(member.needs, kind.shape.free, strict=True)
            )
            for kind in kinds
        ):
            yield number


def _inexhaustible_requests(
    kinds: tuple[NodeKind, ...], asked: Iterable[int]
) -> frozenset[int]:
    """Find those of request kinds that some device serves for nothing, and again."""
    listed = tuple(asked)
    return frozenset(
        request_kind
        for kind in kinds
        for group in kind.shape.groups
        if group.traits.costs
        for request_kind in listed
        if group.mask >> request_kind & 1 and not any(group.traits.costs[request_kind])
    )


def _is_bounded_by_devices(member: MemberKind, inexhaustible: frozenset[int]) -> bool:
    """True if a pod leaves fewer devices behind, whatever it takes."""
    return any(
        all(
            (ask.count or ask.all_devices) and ask.kind not in inexhaustible
            for ask in (member.asks[index] for index in member.alternatives(request))
        )
        for request in range(member.requests)
    )
