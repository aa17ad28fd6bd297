"""Who uses what of the nodes: decided gangs by their members, others by their pods.

A gang's pods count from the opening of their gates, bound or not: they are pinned. Each
holder's share lies with the node, so a gang or pod that changes touches the pages
of its own nodes only. Devices are the business of `usage.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from msgspec import structs

from contracts.ids import GangKey, GangUID, Namespace, NodeName
from contracts.lifecycle import GangRecord
from contracts.names import CHECKPOINTED, GANG_UID
from contracts.pods.node_affinity import read_pinned_node
from contracts.pods.node_resources import PODS, count_requested, sum_requests
from contracts.times import read_time
from contracts.workload import Pod
from solver.snapshot.events import ANYTHING, POD_EVENT
from solver.snapshot.inventory import Inventory, with_node_part, with_node_parts
from solver.snapshot.node_state import NodeUse, add_amounts
from solver.snapshot.running import running_of_member, running_of_pod

NodeUses = Mapping[NodeName, NodeUse]
"""What one holder uses, by node."""
ENDED = ("Succeeded", "Failed")


def uses_of_gang(record: GangRecord) -> dict[NodeName, NodeUse]:
    """Return what a gang uses of its nodes: nothing unless it holds its devices."""
    if record.allocated is None or record.submission is None:
        return {}
    gang = record.submission.gang
    requested = {
        member.name: count_requested(member.node.resources)
        for member in gang.spec.members
    }
    amounts: dict[NodeName, dict[str, int]] = {}
    counts: dict[NodeName, Counter[str]] = {}
    for pod in record.allocated.members:
        needs = {PODS: 1, **requested.get(pod.member, {})}
        add_amounts(amounts.setdefault(pod.node, {}), needs)
        counts.setdefault(pod.node, Counter())[pod.member] += needs[PODS]
    namespace, members = gang.metadata.namespace, gang.spec.members
    return {
        node: NodeUse(
            amounts=amounts[node],
            gang=record.key,
            decided=True,
            pods=tuple(
                running_of_member(namespace, member, counts[node][member.name])
                for member in members
                if counts[node][member.name]
            ),
        )
        for node in sorted(amounts)
    }


def uses_of_pod(pod: Pod | None) -> dict[NodeName, NodeUse]:
    """Return what a pod uses of its node: nothing before it has one, or at the end.

    Raises:
        DecodeError: a pod of a gang has an affinity that cannot be read.
    """
    if pod is None or pod.status.phase in ENDED:
        return {}
    meta = pod.metadata
    uid = GangUID(meta.annotations.get(GANG_UID, ""))
    # Whose pod it is its author says: it is of no gang of another namespace.
    gang = GangKey(Namespace(meta.namespace), uid) if uid else None
    node = pod.spec.node_name
    if not node and not pod.spec.scheduling_gates:
        # kube-scheduler preempts others for a nominated pod, or is about to bind it.
        pinned = read_pinned_node(pod.spec.affinity) if gang else ""
        node = NodeName(pinned or pod.status.nominated_node_name)
    if not node:
        return {}
    amounts = {PODS: 1, **count_requested(sum_requests(pod.spec))}
    use = NodeUse(
        amounts=amounts,
        gang=gang,
        pods=(running_of_pod(pod),),
        checkpointed_s=read_time(meta.annotations.get(CHECKPOINTED, "")),
    )
    return {node: use}


def with_node_uses(
    inventory: Inventory,
    holder: str,
    nodes_before: Iterable[NodeName],
    uses_after: NodeUses,
) -> Inventory:
    """Let a holder use just this; `nodes_before`: where it used something."""
    for node in sorted({*nodes_before, *uses_after}):
        use = uses_after.get(node)
        use_by_holder = dict(inventory.node_uses.get(node) or {})
        before = use_by_holder.pop(holder, None)
        if before == use:
            continue
        if use is not None:
            use_by_holder[holder] = use
        uses = inventory.node_uses
        uses = (
            uses.with_item(node, use_by_holder) if use_by_holder else uses.without(node)
        )
        inventory = structs.replace(inventory, node_uses=uses)
        if before is not None and use is not None and _uses_the_same(before, use):
            continue
        inventory = _with_repelling(inventory, node, use_by_holder.values())
        if node in inventory.nodes:
            inventory = with_node_part(inventory, node)
        # A pod that kept others away may be gone, even where no amount says so.
        was_in_the_way = before is not None and any(
            pod.apart or pod.ports for pod in before.pods
        )
        if was_in_the_way:
            inventory = inventory.with_grown(ANYTHING)
        # Gangs that look for pods, or avoid them, may have a place now.
        inventory = inventory.with_grown(POD_EVENT)
    return inventory


def _uses_the_same(before: NodeUse, after: NodeUse) -> bool:
    """True if a holder only saved its work since."""
    return structs.replace(before, checkpointed_s=after.checkpointed_s) == after


def without_node_users(
    inventory: Inventory, users: Mapping[NodeName, Collection[str]]
) -> Inventory:
    """Let holders use nothing of some nodes any more, each node once.

    As `with_node_uses` does, but for the events.
    """
    uses_by_node, unused = dict[NodeName, dict[str, NodeUse]](), list[NodeName]()
    for node, gone in users.items():
        before = inventory.node_uses.get(node) or {}
        left = {holder: use for holder, use in before.items() if holder not in gone}
        if left:
            uses_by_node[node] = left
        else:
            unused.append(node)
    uses = inventory.node_uses.with_items(uses_by_node).without_items(unused)
    inventory = structs.replace(inventory, node_uses=uses)
    for node in users:
        if node in inventory.repelling:
            left = uses_by_node.get(node, {})
            inventory = _with_repelling(inventory, node, left.values())
    known = (node for node in users if node in inventory.nodes)
    return with_node_parts(inventory, known)


def _with_repelling(
    inventory: Inventory, node: NodeName, uses: Iterable[NodeUse]
) -> Inventory:
    """Note whether pods on a node keep others away."""
    repelling = inventory.repelling
    if any(pod.apart for use in uses for pod in use.pods):
        repelling = repelling.with_item(node, True)
    else:
        repelling = repelling.without(node)
    if repelling is inventory.repelling:
        return inventory
    return structs.replace(inventory, repelling=repelling)
