"""Which nodes let a member in and for how many pods, and why the others do not.

First what the pods themselves select, then what may pass: nodes that are away, taints,
other pods, amounts. Devices are not counted here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from msgspec import Struct

from contracts.allocation import Reason, Rule
from contracts.counts import counted
from contracts.device import DeviceTaint
from contracts.ids import NodeName
from contracts.pods.node_resources import CPU, PODS
from contracts.quantity import NANO, Quantity, format_binary
from contracts.workload import NodeTaint
from solver.devices.candidates import tolerates_taint
from solver.devices.gather import Cluster
from solver.explain.affinity import (
    explain_crowding,
    find_obstacle,
    find_take,
    list_rooms,
)
from solver.kinds.affinity.surroundings import NO_NODE
from solver.kinds.node_cache import NodeCache
from solver.kinds.node_fit import (
    UNSCHEDULABLE,
    NodeFit,
    fit_of,
    is_chosen,
    is_tolerated,
    left_of,
    list_undeclared,
    need_of,
)
from solver.problem.gangs import MemberPart
from solver.snapshot.parts import NodePart

PLENTY = 1 << 24
MOST_NAMED = 3
"""Things of a sort that a message names: taints, gangs."""
_BYTES = ("memory", "ephemeral-storage")


BESIDE = Rule.POD_APART
"""Stands for all rules between pods; a check says which of them it is."""
NODE_RULES = (
    Rule.NODE_SELECTION,
    Rule.NODE_FEATURES,
    Rule.NODE,
    Rule.NODE_TAINTED,
    BESIDE,
)
"""What keeps a member from nodes, amounts aside, in the order of counting."""


class NodeCheck(Struct, frozen=True):
    """How far one node lets a member in."""

    node: NodePart
    passed: int
    """How many of `NODE_RULES` let the member in, before the first that does not."""
    why: str
    """What keeps it away in words: `not ready`, `a=b:NoSchedule`, `not selected`."""
    room: dict[str, int]
    """Pods that there is enough of a resource for, by resource, and of what rules
    between pods count, by its name; empty: no limit."""
    beside: Rule = BESIDE
    """Which rule between pods keeps it away, where one does."""


class Scarcity(Struct, frozen=True):
    """The resource that leaves the least room."""

    resource: str
    need: int
    """What each pod needs of it."""
    nodes: int
    """Nodes that would do otherwise."""
    best: NodeName
    """The node among them that has most left."""
    left: int
    room: int
    """Pods that all of them have room for."""


_CHECKS: NodeCache[NodeCheck] = NodeCache()


def node_demand_of(member: MemberPart) -> Hashable:
    """Return a key of all that a member asks of nodes besides devices."""
    amounts = tuple(sorted(member.resources.items()))
    return (fit_of(member), amounts, member.resolved.takes)


def check_nodes(member: MemberPart, cluster: Cluster) -> dict[NodeName, NodeCheck]:
    """Check all nodes for a member."""
    fit, results = fit_of(member), _CHECKS.of(node_demand_of(member))
    resources = sorted({PODS, *member.resources})
    checks = {}
    for name, node in cluster.nodes.items():
        entry = results.get(name)
        if entry is None or entry[0] is not node:
            check = _check_node(member, fit, resources, node.node)
            entry = results[name] = (node, check)
        checks[name] = entry[1]
    return checks


def _check_node(
    member: MemberPart, fit: NodeFit, resources: list[str], node: NodePart
) -> NodeCheck:
    room = {}
    for name in resources:
        left, need = left_of(node, name), need_of(member, name)
        if left is not None and need:
            room[name] = left // need
    room.update(list_rooms(member, node))
    # What would select a node without a Node object is unknown.
    if node.unavailable != NO_NODE and not is_chosen(fit, node):
        return NodeCheck(node, 0, "not selected", room)
    undeclared = list_undeclared(fit, node)
    if node.unavailable != NO_NODE and undeclared:
        return NodeCheck(node, 1, f"without {', '.join(undeclared)}", room)
    if node.unavailable:
        return NodeCheck(node, 2, node.unavailable, room)
    if not is_tolerated(fit, node):
        return NodeCheck(node, 3, _name_taint(fit, node), room)
    obstacle = find_obstacle(member, node, room)
    if obstacle is not None:
        rule, why = obstacle
        return NodeCheck(node, 4, why, room, rule)
    return NodeCheck(node, len(NODE_RULES), "", room)


def _name_taint(fit: NodeFit, node: NodePart) -> str:
    """Name a taint that is not tolerated."""
    for taint in node.taints:
        if not any(
            tolerates_taint(toleration, taint) for toleration in fit.tolerations
        ):
            return format_taint(taint)
    return f"unschedulable, {UNSCHEDULABLE.key}:{UNSCHEDULABLE.effect}"


def format_taint(taint: NodeTaint | DeviceTaint) -> str:
    """Write a taint as kubectl does: `key=value:Effect`."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def room_of(check: NodeCheck) -> int:
    """Count the pods that a node has enough resources for."""
    return min(check.room.values()) if check.room else PLENTY


def find_scarcity(
    member: MemberPart,
    pods: Mapping[NodeName, int],
    checks: Mapping[NodeName, NodeCheck],
) -> Scarcity:
    """Find the resource that leaves the least room, where some does.

    `pods`: the nodes that would do otherwise, and how many pods each could take.
    """
    considered = [checks[name] for name in sorted(pods)]
    rooms = {
        name: sum(min(pods[c.node.name], c.room.get(name, PLENTY)) for c in considered)
        for name in sorted({name for check in considered for name in check.room})
    }
    scarce = min(rooms, key=lambda name: rooms[name])
    limited = [check.node for check in considered if scarce in check.room]
    best = max(limited, key=lambda node: left_of(node, scarce) or 0)
    return Scarcity(
        resource=scarce,
        need=need_of(member, scarce),
        nodes=len(considered),
        best=best.name,
        left=left_of(best, scarce) or 0,
        room=sum(min(pods[check.node.name], room_of(check)) for check in considered),
    )


def explain_scarcity(member: MemberPart, scarcity: Scarcity) -> Reason:
    """Return which resource, or rule between pods, leaves the least room."""
    take = find_take(member, scarcity.resource)
    if take is not None:
        return explain_crowding(member, take, scarcity.nodes, scarcity.room)
    needed, remaining = (
        format_amount(scarcity.resource, n) for n in (scarcity.need, scarcity.left)
    )
    best, nodes = scarcity.best, scarcity.nodes
    if nodes == 1:
        most = f"{best}, the only otherwise suitable node, has {remaining} left"
    else:
        most = f"of {nodes} otherwise suitable nodes {best} has the most left: "
        most += remaining
    message = f"{need_of_pods(member.count, f'{needed} on one node')}; {most}"
    if scarcity.room:
        message += f"; room for {scarcity.room} of {counted(member.count, 'pod')}"
    return Reason(
        rule=Rule.NODE_RESOURCES,
        subject=member.name,
        field=f"node.resources[{scarcity.resource}]",
        message=message,
        facts={
            "asked": scarcity.need,
            "left": scarcity.left,
            "nodes": scarcity.nodes,
            "room": scarcity.room,
            "pods": member.count,
        },
    )


def describe_refusals(checks: Iterable[NodeCheck], passed: int) -> str:
    """Describe what keeps a member from how many nodes: those that stop at this rule.

    `a=b:NoSchedule on 3 of 4 nodes, such as node-1`; empty: none stops there.
    """
    considered = list(checks)
    names_by_why: dict[str, list[NodeName]] = {}
    for check in considered:
        if check.passed == passed:
            names_by_why.setdefault(check.why, []).append(check.node.name)
    return describe_nodes(names_by_why, len(considered))


def describe_nodes(names_by_why: Mapping[str, list[NodeName]], nodes: int) -> str:
    """Describe on which of so many nodes something holds, what concerns most first."""
    most = sorted(names_by_why.items(), key=lambda item: (-len(item[1]), item[0]))
    parts = [
        f"{why} on {min(names)}"
        if len(names) == 1
        else f"{why} on {len(names)} of {counted(nodes, 'node')}, such as {min(names)}"
        for why, names in most[:MOST_NAMED]
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def need_of_pods(pods: int, what: str) -> str:
    """Begin a sentence: `1 pod needs 8 gpus`, `each of 4 pods needs 8 gpus`."""
    each = counted(pods, "pod")
    return f"{each} needs {what}" if pods == 1 else f"each of {each} needs {what}"


def format_amount(name: str, units: int) -> str:
    """Write an amount of a resource as people do: `cpu 1500m`, `memory 64Gi`."""
    if name == CPU:
        return f"{name} {Quantity.of_nano(units * (NANO // 1000))}"
    if name in _BYTES or name.startswith("hugepages-"):
        return f"{name} {format_binary(units)}"
    return f"{name} {units}"
