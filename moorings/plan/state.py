"""The state that an input describes: what is there before anything is decided. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.ids import ClusterName, object_key
from contracts.kubernetes.decode import KubernetesObject
from contracts.kueue import LocalQueue, QueueObject
from contracts.messages import ObjectObserved
from contracts.names import GANG_UID
from contracts.workload import Namespace, Node, Pod
from moorings.plan.objects import PlanObject
from solver.snapshot.listed import observe_all
from solver.snapshot.snapshot import Snapshot, apply

CLUSTER = ClusterName("plan")
_STATE = (
    ResourceSlice
    | Node
    | DeviceClass
    | DeviceTaintRule
    | ResourceClaimTemplate
    | ResourceClaim
    | Pod
    | Namespace
    | QueueObject
)


def apply_state(objects: Iterable[PlanObject]) -> Snapshot:
    """Apply all state to an empty snapshot; two slices of one name stay two."""
    return observe_all(Snapshot(), _name_uniquely(objects)).without_grown()


def _name_uniquely(
    objects: Iterable[PlanObject],
) -> Iterator[tuple[str, KubernetesObject]]:
    count_by_name = dict[tuple[str, str], int]()
    for entry in objects:
        value, kind = entry.decoded.value, entry.decoded.kind
        if not isinstance(value, _STATE) or _is_waiting(value):
            continue
        key = value.metadata.name
        if isinstance(value, ResourceClaimTemplate | ResourceClaim | Pod | LocalQueue):
            key = object_key(value.metadata.namespace, key)
        count = count_by_name.get((kind, key), 0) + 1
        count_by_name[kind, key] = count
        if count > 1 and isinstance(value, ResourceSlice | ResourceClaim | Pod):
            key = f"{key}#{count}"
        yield key, value


def _is_waiting(value: KubernetesObject) -> bool:
    """True if it is a pod without a node."""
    if not isinstance(value, Pod) or value.spec.node_name:
        return False
    return GANG_UID not in value.metadata.annotations


def with_node(snapshot: Snapshot, name: str) -> Snapshot:
    """Add a node of which only the name is known."""
    raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    message = ObjectObserved(cluster=CLUSTER, kind="Node", key=name, object=raw)
    return apply(snapshot, message)
