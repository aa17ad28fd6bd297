"""The writes of the cluster sink: merge patches, each valid on one version only.

Every patch carries the uid and resourceVersion of the object as it was seen. If the
object has changed meanwhile the API server answers with a conflict; an object that was
made anew is not touched. A merge patch keeps the fields that we do not know (KEP-4381:
status of a claim).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from contracts.allocation import AllocationResult
from contracts.claim import ResourceClaim
from contracts.codec import to_builtins
from contracts.device import NodeSelector
from contracts.ids import NodeName
from contracts.messages import PodRef
from contracts.meta import ObjectMeta
from contracts.names import FINALIZER, GATE, MANAGED, VOID
from contracts.workload import Pod
from publisher.gangs.claims import list_consumers, list_missing
from publisher.gangs.node_affinity import narrow_affinity

_TIME = "allocationTimestamp"


class Purpose(StrEnum):
    """What a write is for, as logs and counters name it."""

    PREPARE = "prepare"
    """The finalizer, ahead of the allocation."""
    ALLOCATE = "allocate"
    RESERVE = "reserve"
    CLEAR = "clear"
    OPEN = "open"
    """The gate, with the node pin."""
    WITHDRAW = "withdraw"
    """The mark that a gate is not opened for what is given up."""


class Patch(Struct, frozen=True, kw_only=True):
    """One write."""

    kind: str
    namespace: str
    name: str
    subresource: str = ""
    body: dict[str, Any]
    purpose: Purpose
    gang: str = ""
    """Uid of the gang whose decision is carried out, and its attempt."""
    attempt: int = 0

    @property
    def key(self) -> str:
        """The object's `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def uid(self) -> str:
        """The uid of the object that is meant."""
        return str(self.body["metadata"]["uid"])


def prepare(claim: ResourceClaim) -> Patch:
    """Set the finalizer that lets the controller manager free the claim."""
    others = [name for name in claim.metadata.finalizers if name != FINALIZER]
    finalizers = [*others, FINALIZER]
    body = {"finalizers": finalizers, "annotations": {MANAGED: "true"}}
    return _of_claim(claim, Purpose.PREPARE, metadata=body)


def allocate(
    claim: ResourceClaim, allocation: AllocationResult, pods: Iterable[PodRef], now: str
) -> Patch:
    """Write allocation, time and reservations at once: none can be added later.

    `now` is RFC 3339, whole seconds, UTC: fractions are lost and then differ.
    """
    body = to_builtins(allocation) | {_TIME: now}
    reserved = to_builtins(list_consumers(claim, pods))
    status = {"allocation": body, "reservedFor": reserved}
    return _of_claim(claim, Purpose.ALLOCATE, status=status)


def without_allocation_time(patch: Patch) -> dict[str, Any]:
    """Return the body of a patch for an API server that has no such field."""
    status = patch.body.get("status") or {}
    allocation = status.get("allocation")
    if not allocation:
        return patch.body
    rest = {key: value for key, value in allocation.items() if key != _TIME}
    return {**patch.body, "status": {**status, "allocation": rest}}


def reserve(claim: ResourceClaim, pods: Iterable[PodRef]) -> Patch:
    """Reserve an allocated claim for further pods."""
    users = () if claim.status is None else claim.status.reserved_for
    more = list_missing(claim, pods)
    status = {"reservedFor": to_builtins([*users, *more])}
    return _of_claim(claim, Purpose.RESERVE, status=status)


def clear(claim: ResourceClaim) -> Patch:
    """Give the devices of a claim back; its reservations go in the same write."""
    status = {"allocation": None, "reservedFor": None, "devices": None}
    return _of_claim(claim, Purpose.CLEAR, status=status)


def withdraw(pod: Pod, marks: str) -> Patch:
    """Mark a pod as withdrawn from what is given up."""
    meta = pod.metadata
    body = {"metadata": {**_identity_of_object(meta), "annotations": {VOID: marks}}}
    return Patch(
        kind="Pod",
        namespace=meta.namespace,
        name=meta.name,
        body=body,
        purpose=Purpose.WITHDRAW,
    )


def open_gate(pod: Pod, node: NodeName, annotations: Mapping[str, str]) -> Patch:
    """Take our gate away and bind the pod to its node, in one write."""
    meta = pod.metadata
    gates = [{"name": gate.name} for gate in pod.spec.scheduling_gates]
    return Patch(
        kind="Pod",
        namespace=meta.namespace,
        name=meta.name,
        body={
            "metadata": {**_identity_of_object(meta), "annotations": dict(annotations)},
            "spec": {
                "schedulingGates": [gate for gate in gates if gate["name"] != GATE],
                "affinity": narrow_affinity(
                    pod.spec.affinity, NodeSelector.of_node(node)
                ),
            },
        },
        purpose=Purpose.OPEN,
    )


def _of_claim(
    claim: ResourceClaim,
    purpose: Purpose,
    *,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> Patch:
    meta = claim.metadata
    body: dict[str, Any] = {
        "metadata": {**_identity_of_object(meta), **(metadata or {})}
    }
    if status is not None:
        body["status"] = dict(status)
    return Patch(
        kind="ResourceClaim",
        namespace=meta.namespace,
        name=meta.name,
        subresource="" if status is None else "status",
        body=body,
        purpose=purpose,
    )


def _identity_of_object(meta: ObjectMeta) -> dict[str, str]:
    return {"uid": meta.uid, "resourceVersion": meta.resource_version}
