"""Which nodes let a member in and for how many pods, and what the others say.

In kube-scheduler's order: usable, taints, names and labels, amounts. Devices are not
counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from contracts.allocation import Reason, Rule
from contracts.ids import NodeName
from contracts.node_resources import CPU, PODS
from contracts.quantity import NANO, Quantity
from solver.problem.node_fit import (
    UNSCHEDULABLE,
    NodeFit,
    fit_of,
    is_chosen,
    is_tolerated,
    left_of,
    need_of,
    tolerates,
)
from solver.problem.problem import MemberPart
from solver.snapshot.parts import NodePart

PLENTY = 1 << 24
_BINARY = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))
_BYTES = ("memory", "ephemeral-storage")


class NodeCheck(Struct, frozen=True):
    """What one node says to one kind of member."""

    node: NodePart
    refusal: Rule | None
    """The first rule that keeps the member away; None: it may come."""
    why: str
    """The same in words, such as `not ready` or `a=b:NoSchedule`."""
    room: dict[str, int]
    """Pods that there is enough of a resource for, by resource; empty: no limit."""

    def passes(self, *rules: Rule) -> bool:
        """Say whether none of these rules keeps the member away."""
        return self.refusal not in rules


def check_nodes(
    member: MemberPart, nodes: Iterable[NodePart]
) -> dict[NodeName, NodeCheck]:
    """Check all nodes for a member."""
    fit = fit_of(member)
    resources = sorted({PODS, *member.resources})
    return {node.name: _check(member, fit, resources, node) for node in nodes}


def _check(
    member: MemberPart, fit: NodeFit, resources: list[str], node: NodePart
) -> NodeCheck:
    room = {}
    for name in resources:
        left = left_of(node, name)
        if left is not None:
            room[name] = left // need_of(member, name)
    if node.unavailable:
        return NodeCheck(node, Rule.NODE, node.unavailable, room)
    if not is_tolerated(fit, node):
        return NodeCheck(node, Rule.NODE_TAINTED, _taint(fit, node), room)
    if not is_chosen(fit, node):
        return NodeCheck(node, Rule.NODE_SELECTION, "", room)
    return NodeCheck(node, None, "", room)


def _taint(fit: NodeFit, node: NodePart) -> str:
    """Name a taint that is not tolerated."""
    for taint in node.taints:
        if not any(tolerates(item, taint) for item in fit.tolerations):
            value = f"={taint.value}" if taint.value else ""
            return f"{taint.key}{value}:{taint.effect}"
    return f"unschedulable, {UNSCHEDULABLE.key}:{UNSCHEDULABLE.effect}"


def room_of(check: NodeCheck) -> int:
    """Count the pods that a node has enough resources for."""
    return min(check.room.values(), default=PLENTY)


def scarce_reason(
    member: MemberPart,
    pods: Mapping[NodeName, int],
    checks: Mapping[NodeName, NodeCheck],
) -> Reason:
    """Say which resource leaves the least room; `pods`: how many else fit, by node."""
    known = [checks[name] for name in sorted(pods)]
    names = sorted({name for check in known for name in check.room})
    rooms = {
        name: sum(min(pods[c.node.name], c.room.get(name, PLENTY)) for c in known)
        for name in names
    }
    scarce = min(names, key=lambda name: (rooms[name], name))
    limited = [check for check in known if scarce in check.room]
    best = max(limited, key=lambda check: left_of(check.node, scarce) or 0).node
    left, need = left_of(best, scarce) or 0, need_of(member, scarce)
    room = sum(min(pods[check.node.name], room_of(check)) for check in known)
    message = (
        f"asks for {shown(scarce, need)} on one node for each of {member.count} pods; "
        f"of {len(known)} nodes that would do otherwise {best.name} has most left, "
        f"{shown(scarce, left)}; there is room for {room} pods"
    )
    facts = {
        "asked": need,
        "left": left,
        "nodes": len(known),
        "podsWithRoom": room,
        "pods": member.count,
    }
    return Reason(
        rule=Rule.NODE_RESOURCES,
        subject=member.name,
        field=f"node.resources[{scarce}]",
        message=message,
        facts=facts,
    )


def shown(name: str, units: int) -> str:
    """Write an amount of a resource as people do: `cpu 1500m`, `memory 64Gi`."""
    if name == CPU:
        return f"{name} {Quantity.of_nano(units * (NANO // 1000))}"
    if name in _BYTES or name.startswith("hugepages-"):
        for size, suffix in _BINARY:
            if units and units % size == 0:
                return f"{name} {units // size}{suffix}"
    return f"{name} {units}"
