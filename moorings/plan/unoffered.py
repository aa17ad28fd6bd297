"""Extended resources that neither a Node nor a DeviceClass offers. Pure.

A pod that asks for one asks for a device, so it is not passed by. Nodes that say what
they have say that none has it; of a Node that does not, nobody knows whether it would.
Opaque integer resources are counted on Nodes alone, so pods wait for a Node of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.allocation import Reason, Rule
from contracts.validate.names import is_opaque_integer
from contracts.workload import Node
from moorings.plan.extended_resources import list_extended
from moorings.plan.pods import PlannedPod, RefusedPod
from publisher.gangs.view import is_over


def find_unoffered(
    pods: Iterable[PlannedPod], served: frozenset[str], nodes: Iterable[Node]
) -> dict[str, frozenset[str]]:
    """Return requested resources that nothing offers, by uid of the pod."""
    offered = {
        name
        for node in nodes
        for name, amount in node.status.allocatable.items()
        if amount.nano > 0
    }
    found: dict[str, frozenset[str]] = {}
    for each in pods:
        pod = each.pod
        if not pod.spec.node_name and not is_over(pod):
            unknown = list_extended(pod.spec) - served - offered
            missing = {name for name in unknown if not is_opaque_integer(name)}
            if missing:
                found[pod.metadata.uid] = frozenset(missing)
    return found


def refuse_unoffered(
    pods: Iterable[PlannedPod], unoffered: dict[str, frozenset[str]]
) -> tuple[list[PlannedPod], list[RefusedPod]]:
    """Refuse pods that request what nothing offers."""
    kept, refused = list[PlannedPod](), list[RefusedPod]()
    for each in pods:
        missing = unoffered.get(each.pod.metadata.uid)
        if missing is None:
            kept.append(each)
            continue
        name = each.pod.metadata.name
        reason = Reason(
            rule=Rule.UNKNOWN_CLASS,
            subject=name,
            message=f"no DeviceClass of the input offers {', '.join(sorted(missing))}, "
            "and no Node of the input reports it",
        )
        refused.append(RefusedPod(pod=each.pod, name=name, reason=reason))
    return kept, refused
