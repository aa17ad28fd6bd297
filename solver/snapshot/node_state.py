"""What is known of one node, and the part that follows from it.

Its agent, its Node object, and who uses how much of it: decided gangs and pods.
Pods of a gang that holds its devices here are not counted beside it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from contracts.ids import GangKey, NodeName
from contracts.pods.node_features import KUBELET_FEATURES
from contracts.pods.node_resources import count_allocatable
from contracts.quantity import Quantity
from contracts.workload import Node, NodeStatus
from solver.snapshot.parts import NodePart
from solver.snapshot.running import RunningPod

KEEPS_AWAY = ("NoSchedule", "NoExecute")
Amounts = Mapping[str, int]
"""Units by resource, `pods` among them."""
_LARGEST = 2**63 - 1


def _is_needed(feature: str) -> bool:
    """Return True if devices or pods may need a feature."""
    return feature.startswith("DRA") or feature in KUBELET_FEATURES


class NodeUse(Struct, frozen=True, kw_only=True):
    """What one holder uses of a node."""

    amounts: dict[str, int]
    gang: GangKey | None = None
    """Of a pod: the very gang that it runs for, in its own namespace; of a gang:
    itself. Two gangs may have one name, as when pods of a running gang are replaced."""
    decided: bool = False
    """True if it is a gang that was decided, not a pod."""
    pods: tuple[RunningPod, ...] = ()
    """Its pods, as the rules of others see them."""
    checkpointed_s: float = 0.0
    """When a pod says that its gang last saved its work; 0: it does not."""


class NodeState(Struct, frozen=True, kw_only=True):
    """What the node's agent and Kubernetes say of a node."""

    announced: bool = False
    away: bool = False
    labels: dict[str, str] = {}
    """As its agent announces them; those of the Node win."""
    resources: dict[str, Quantity] = {}
    """As its agent announces them; used where the Node has none."""
    node: Node | None = None


def make_node_part(
    name: NodeName, state: NodeState, uses: Iterable[NodeUse], *, names_nodes: bool
) -> NodePart:
    """Put together what is known of a node.

    Where Kubernetes names its nodes (`names_nodes`), devices on a node that it does not
    name are of no use: no pod can be bound there.
    """
    labels, unavailable = state.labels, ""
    if state.announced and state.away:
        unavailable = "away"
    elif state.node is None and names_nodes:
        unavailable = "no Node"
    if state.node is not None:
        labels = {**labels, **state.node.metadata.labels}
        if state.node.is_ready is False:
            unavailable = unavailable or "not ready"
    node = state.node or Node()
    return NodePart(
        name=name,
        labels=labels,
        declared_features=tuple(
            sorted(filter(_is_needed, node.status.declared_features))
        ),
        plugin_resources=_list_plugin_resources(node.status),
        unavailable=unavailable,
        taints=tuple(t for t in node.spec.taints if t.effect in KEEPS_AWAY),
        unschedulable=node.spec.unschedulable,
        free=_compute_free(node.status.allocatable or state.resources, uses),
    )


def _list_plugin_resources(status: NodeStatus) -> tuple[str, ...]:
    offered = status.allocatable.items()
    return tuple(sorted(name for name, q in offered if "/" in name and q.nano > 0))


def _compute_free(
    offered: Mapping[str, Quantity], uses: Iterable[NodeUse]
) -> dict[str, int] | None:
    if not offered:
        return None
    free = count_allocatable(offered)
    used = _sum_used(uses)
    return {
        name: max(amount - used.get(name, 0), -_LARGEST)
        for name, amount in free.items()
    }


def _sum_used(uses: Iterable[NodeUse]) -> dict[str, int]:
    """Add up what is used; of a gang and its own pods whichever is more."""
    decided: dict[GangKey, dict[str, int]] = {}
    bound: dict[GangKey, dict[str, int]] = {}
    total: dict[str, int] = {}
    for use in uses:
        if use.gang is None:
            add_amounts(total, use.amounts)
        else:
            side = decided if use.decided else bound
            add_amounts(side.setdefault(use.gang, {}), use.amounts)
    for gang in decided.keys() | bound.keys():
        of_gang, of_pods = decided.get(gang, {}), bound.get(gang, {})
        of_both = {
            name: max(of_gang.get(name, 0), of_pods.get(name, 0))
            for name in of_gang.keys() | of_pods.keys()
        }
        add_amounts(total, of_both)
    return total


def list_running(uses: Iterable[NodeUse]) -> list[RunningPod]:
    """List the pods on a node; of a gang and its own pods whichever are more."""
    running: list[RunningPod] = []
    decided: dict[GangKey, list[RunningPod]] = {}
    bound: dict[GangKey, list[RunningPod]] = {}
    for use in uses:
        if use.gang is None:
            running.extend(use.pods)
        else:
            side = decided if use.decided else bound
            side.setdefault(use.gang, []).extend(use.pods)
    for gang in decided.keys() | bound.keys():
        of_gang, of_pods = decided.get(gang, []), bound.get(gang, [])
        if sum(p.count for p in of_gang) <= sum(p.count for p in of_pods):
            running.extend(of_pods)
            continue
        # Pods of the gang that ran before it was decided again are not its members.
        running.extend(of_gang)
        running.extend(p for p in of_pods if not any(_is_one(g, p) for g in of_gang))
    return running


def _is_one(member: RunningPod, pod: RunningPod) -> bool:
    """True if a pod may be one of a decided member."""
    return bool(member.labels) and member.labels.items() <= pod.labels.items()


def add_amounts(total: dict[str, int], more: Amounts, times: int = 1) -> None:
    """Add amounts to a total."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount * times


def is_only_less(before: NodePart, after: NodePart) -> bool:
    """True if all that changed is that more of the node is in use."""
    if before.free is None or after.free is None:
        return False
    if before.free.keys() != after.free.keys():
        return False
    if structs.replace(before, free=after.free) != after:
        return False
    return all(after.free[name] <= amount for name, amount in before.free.items())
