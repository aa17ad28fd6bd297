"""Which engine is made for a batch, and why."""

from __future__ import annotations

from msgspec import Struct

from solver.problem.demand import Demand
from solver.problem.nodes import NodeKind

DIRECT, PATTERN = "direct", "pattern"


class Plan(Struct, frozen=True):
    """An engine, and why it was chosen."""

    engine: str = ""
    reason: str = ""


def planned(demand: Demand, kinds: tuple[NodeKind, ...]) -> Plan:
    """Choose an engine: patterns are of single nodes, and of pods that use them up."""
    if any(kind.admin for kind in demand.query.requests):
        return Plan(DIRECT, "admin access takes nothing")
    for member in demand.member_kinds:
        if not any(ask.count or ask.all_devices for ask in member.asks):
            return Plan(DIRECT, "some pods ask for no devices")
    for kind in kinds:
        shape = kind.shape
        if any(group.identity for group in shape.groups):
            return Plan(DIRECT, "devices that several nodes see")
    return Plan(PATTERN, "every rule is about one node")
