"""Who uses what of the nodes: decided gangs by their members, others by their pods.

Each holder's share lies with the node, so a gang or pod that changes touches the pages
of its own nodes only. Devices are the business of `usage.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from contracts.gang import GANG_LABEL
from contracts.ids import NodeName, object_key
from contracts.node_resources import PODS, requested, units_asked
from contracts.workload import Pod
from solver.snapshot.gangs import GangRecord
from solver.snapshot.inventory import Inventory, with_node_part
from solver.snapshot.node_state import NodeUse, add

NodeUses = Mapping[NodeName, NodeUse]
"""What one holder uses, by node."""
ENDED = ("Succeeded", "Failed")


def uses_of_gang(record: GangRecord) -> dict[NodeName, NodeUse]:
    """Say what a gang uses of its nodes: nothing unless it holds its devices."""
    if record.allocated is None or record.submission is None:
        return {}
    gang = record.submission.gang
    asked = {item.name: units_asked(item.node.resources) for item in gang.spec.members}
    amounts: dict[NodeName, dict[str, int]] = {}
    for pod in record.allocated.members:
        total = amounts.setdefault(pod.node, {})
        add(total, {PODS: 1, **asked.get(pod.member, {})})
    key = object_key(gang.metadata.namespace, gang.metadata.name)
    return {
        node: NodeUse(amounts=amounts[node], gang=key, decided=True)
        for node in sorted(amounts)
    }


def uses_of_pod(pod: Pod | None) -> dict[NodeName, NodeUse]:
    """Say what a pod uses of its node: nothing unless it is bound and not over."""
    if pod is None or not pod.spec.node_name or pod.status.phase in ENDED:
        return {}
    name = pod.metadata.labels.get(GANG_LABEL, "")
    use = NodeUse(
        amounts={PODS: 1, **units_asked(requested(pod.spec))},
        gang=object_key(pod.metadata.namespace, name) if name else "",
    )
    return {pod.spec.node_name: use}


def with_node_uses(
    inventory: Inventory, holder: str, before: Iterable[NodeName], after: NodeUses
) -> Inventory:
    """Let a holder use just this; `before`: the nodes of which it used something."""
    for node in sorted({*before, *after}):
        use = after.get(node)
        held = dict(inventory.node_uses.get(node) or {})
        if held.pop(holder, None) == use:
            continue
        if use is not None:
            held[holder] = use
        uses = inventory.node_uses
        uses = uses.with_item(node, held) if held else uses.without(node)
        inventory = structs.replace(inventory, node_uses=uses)
        if node in inventory.nodes:
            inventory = with_node_part(inventory, node)
    return inventory
