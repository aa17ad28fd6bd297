"""Which engine is made for a batch, and why."""

from __future__ import annotations

from msgspec import Struct

from solver.kinds.demand import Demand, MemberKind
from solver.kinds.nodes import NodeKind

DIRECT, PATTERN = "direct", "pattern"


class Plan(Struct, frozen=True):
    """An engine, and why it was chosen."""

    engine: str = ""
    reason: str = ""


def planned(demand: Demand, kinds: tuple[NodeKind, ...]) -> Plan:
    """Choose an engine: patterns are of single nodes, and of pods that use them up."""
    if any(kind.admin for kind in demand.query.requests):
        return Plan(DIRECT, "admin access takes nothing")
    given = _given_away(kinds)
    free = [member for member in demand.member_kinds if not _uses_up(member, given)]
    for kind in kinds:
        shape = kind.shape
        if any(group.identity for group in shape.groups):
            return Plan(DIRECT, "devices that several nodes see")
        for member in free:
            pairs = zip(member.needs, shape.free, strict=True)
            if not any(need and left is not None for need, left in pairs):
                return Plan(DIRECT, "pods that use nothing up")
    return Plan(PATTERN, "every rule is about one node")


def _given_away(kinds: tuple[NodeKind, ...]) -> frozenset[int]:
    """Find the request kinds that some device serves for nothing, again and again."""
    return frozenset(
        k
        for kind in kinds
        for group in kind.shape.groups
        for k, cost in enumerate(group.traits.costs)
        if group.mask >> k & 1 and not any(cost)
    )


def _uses_up(member: MemberKind, given: frozenset[int]) -> bool:
    """Say whether a pod leaves less behind, whatever it takes."""
    return any(
        all(
            (ask.count or ask.all_devices) and ask.kind not in given
            for ask in (member.asks[a] for a in member.alternatives(request))
        )
        for request in range(member.requests)
    )
