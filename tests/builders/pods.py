"""Pods that wait at our gate, their claims, and submissions about them.

Uids are made from names unless they are given, versions count from one, so that two
objects of one name differ only where a test says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from contracts.allocation import AllocationResult
from contracts.claim import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from contracts.device import NodeSelector
from contracts.ids import NodeName
from contracts.meta import ObjectMeta, OwnerReference
from contracts.names import FINALIZER, GANG, GANG_SIZE, GANG_UID, GATE, MANAGED, MEMBER
from contracts.workload import (
    Pod,
    PodCondition,
    PodResourceClaimStatus,
    PodSchedulingGate,
    PodStatus,
)
from publisher.gangs.node_affinity import narrow_affinity
from tests.builders.claims import claim_spec
from tests.builders.gangs import pod
from tests.builders.values import NAMESPACE, UID


def uid_of(name: str) -> str:
    """Give the uid that an object of a name has here."""
    return f"uid-{name}"


def waiting_pod(
    name: str = "pod-1",
    *,
    gang: str = "",
    size: int | str | None = None,
    member: str = "",
    templates: Mapping[str, str] | Iterable[str] = (),
    shared: Mapping[str, str] | None = None,
    opened_by: str = "",
    node: str = "",
    uid: str = "",
    version: int = 1,
    phase: str = "Pending",
    deleting: bool = False,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: str = "",
    **spec: Any,
) -> Pod:
    """Make a pod at our gate; the claims of its templates are `<pod>-<claim>`.

    `templates` name the generated claims, `shared` gives ResourceClaims by claim.
    `opened_by` is the uid of the gang for which the gate was opened already, `owner`
    that of the Job that makes the pod.
    """
    marks = dict(labels or {}) | ({GANG: gang} if gang else {})
    if member:
        marks[MEMBER] = member
    notes = dict(annotations or {})
    if size is not None:
        notes[GANG_SIZE] = str(size)
    if opened_by:
        notes[GANG_UID] = opened_by
    names = list(templates)
    made = pod(
        name,
        templates={key: f"{key}-template" for key in names},
        claims=shared or {},
        uid=uid or uid_of(name),
        labels=marks,
        annotations=notes,
        scheduling_gates=() if opened_by else (PodSchedulingGate(name=GATE),),
        node_name=NodeName(node) if node else None,
        **spec,
    )
    generated = tuple(
        PodResourceClaimStatus(name=key, resource_claim_name=f"{name}-{key}")
        for key in names
    )
    status = PodStatus(phase=phase, resource_claim_statuses=generated)
    job = OwnerReference(kind="Job", name=owner, uid=owner, controller=True)
    metadata = replace(
        made.metadata,
        resource_version=str(version),
        deletion_timestamp="2026-11-20T12:00:00Z" if deleting else None,
        owner_references=(job,) if owner else (),
    )
    return replace(made, metadata=metadata, status=status)


def refused_pod(
    name: str,
    pinned: str,
    *,
    message: str = "0/2 nodes are available",
    reason: str = "Unschedulable",
    nominated: str = "",
    **fields: Any,
) -> Pod:
    """Make a pod that kube-scheduler refuses on the node that it is `pinned` to."""
    fields = {"opened_by": UID, **fields}
    affinity = narrow_affinity({}, NodeSelector.of_node(NodeName(pinned)))
    made = waiting_pod(name, affinity=affinity, **fields)
    condition = PodCondition(
        type="PodScheduled", status="False", reason=reason, message=message
    )
    status = replace(
        made.status, conditions=(condition,), nominated_node_name=nominated
    )
    return replace(made, status=status)


def disrupted(
    pod: Pod, reason: str = "PreemptionByScheduler", message: str = "no room"
) -> Pod:
    """Let Kubernetes end a pod for others: it is being deleted, and says why."""
    condition = PodCondition(
        type="DisruptionTarget", status="True", reason=reason, message=message
    )
    status = replace(pod.status, conditions=(*pod.status.conditions, condition))
    meta = pod.metadata
    metadata = replace(
        meta,
        deletion_timestamp="2026-11-20T12:00:00Z",
        resource_version=str(meta.version_number + 1),
    )
    return replace(pod, metadata=metadata, status=status)


def real_claim(
    name: str = "pod-1-gpus",
    *,
    allocated: AllocationResult | None = None,
    reserved: Iterable[str] = (),
    managed: bool = True,
    spec: ResourceClaimSpec | None = None,
    uid: str = "",
    version: int = 1,
    namespace: str = NAMESPACE,
    deleting: bool = False,
    pod_group: str = "",
) -> ResourceClaim:
    """Make a claim as the API server has it; `reserved` are names of pods.

    `pod_group`: made for a PodGroup, and reserved for it once it is allocated.
    `managed`: with our finalizer and annotation.
    """
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=uid or uid_of(name),
        resource_version=str(version),
        annotations={MANAGED: "true"} if managed else {},
        finalizers=(FINALIZER,) if managed else (),
        deletion_timestamp="2026-11-20T12:00:00Z" if deleting else None,
    )
    users = tuple(
        ResourceClaimConsumerReference(resource="pods", name=item, uid=uid_of(item))
        for item in reserved
    )
    if pod_group:
        group, uid = "scheduling.k8s.io", uid_of(pod_group)
        made_for = OwnerReference(
            api_version=f"{group}/v1beta1", kind="PodGroup", name=pod_group, uid=uid
        )
        metadata = replace(metadata, owner_references=(made_for,))
        if allocated is not None:
            user = ResourceClaimConsumerReference(
                api_group=group, resource="podgroups", name=pod_group, uid=uid
            )
            users += (user,)
    status = ResourceClaimStatus(allocation=allocated, reserved_for=users)
    return ResourceClaim(metadata=metadata, spec=spec or claim_spec(), status=status)
