"""What a ResourceClaim says: what it holds, for whom, and whether we prepared it.

Stands alone so that plans read claims in one way. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeGuard

from msgspec import Struct

from contracts.allocation import AllocationResult, DeviceRequestAllocationResult
from contracts.claim import ResourceClaim, ResourceClaimConsumerReference
from contracts.ids import DeviceID
from contracts.messages import PodRef
from contracts.meta import OwnerReference
from contracts.names import ALLOCATE, FINALIZER, IMMEDIATE, MANAGED

_POD_GROUPS = "podgroups"
READY = "Ready"
"""The condition of a device in its claim that says whether it can be used."""
Owns = Callable[[ResourceClaim], bool]
"""True if a claim is decided here; others are left to kube-scheduler."""
MOST_RESERVED = 256
"""So many users may a claim have at a time (DRA: ResourceClaimReservedForMaxSize)."""


def reserved_uids(claim: ResourceClaim) -> frozenset[str]:
    """Return the uids of the pods, and of others but PodGroups, that may use a claim.

    A PodGroup holds its claim for whichever pods it has.
    """
    users = () if claim.status is None else claim.status.reserved_for
    return frozenset(user.uid for user in users if user.resource != _POD_GROUPS)


def is_reserved(claim: ResourceClaim) -> bool:
    """True if anybody may use a claim."""
    return claim.status is not None and bool(claim.status.reserved_for)


def is_immediate(claim: ResourceClaim | None) -> bool:
    """True if a claim is to be allocated without a pod, and kept until it is deleted.

    Source: v1alpha2 `allocationMode: Immediate` (KEP-3063).
    """
    return has_immediate_label(claim) and not claim.metadata.deletion_timestamp


def has_immediate_label(claim: ResourceClaim | None) -> TypeGuard[ResourceClaim]:
    """True if a claim is labelled as immediate, whether it is being deleted or not."""
    labels = {} if claim is None else claim.metadata.labels
    return labels.get(ALLOCATE) == IMMEDIATE


def pod_group_of(claim: ResourceClaim) -> OwnerReference | None:
    """Return the PodGroup for all of whose pods a claim was made (KEP-5729)."""
    owners = claim.metadata.owner_references
    return next((owner for owner in owners if owner.kind == "PodGroup"), None)


def list_consumers(
    claim: ResourceClaim, pods: Iterable[PodRef]
) -> list[ResourceClaimConsumerReference]:
    """List for whom to reserve a claim that these pods use, as kube-scheduler would.

    A PodGroup's claim is reserved for the group: kube-scheduler strips its pods.
    """
    group = pod_group_of(claim)
    if group is None:
        return [
            ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
            for pod in pods
        ]
    return [
        ResourceClaimConsumerReference(
            api_group=group.api_version.partition("/")[0],
            resource=_POD_GROUPS,
            name=group.name,
            uid=group.uid,
        )
    ]


def list_missing(
    claim: ResourceClaim, pods: Iterable[PodRef]
) -> list[ResourceClaimConsumerReference]:
    """List those of `list_consumers` for whom a claim is not reserved yet."""
    users = () if claim.status is None else claim.status.reserved_for
    there = {user.uid for user in users}
    return [user for user in list_consumers(claim, pods) if user.uid not in there]


def is_prepared(claim: ResourceClaim) -> bool:
    """True if we have put the finalizer on a claim."""
    meta = claim.metadata
    return FINALIZER in meta.finalizers and MANAGED in meta.annotations


def is_same_allocation(one: AllocationResult, other: AllocationResult) -> bool:
    """True if two allocations are of the same devices for the same requests.

    A server drops fields of features that are off and rewrites quantities, so nothing
    else is compared.
    """
    return devices_of(one) == devices_of(other)


def name_holder(keys: Iterable[str], namespace: str) -> str:
    """Name one of several claims to the authors of a namespace.

    Claims of other namespaces are not theirs to know, so these are not named.
    """
    own = min((key for key in keys if key.startswith(f"{namespace}/")), default="")
    return f"ResourceClaim {own}" if own else "a ResourceClaim of another namespace"


def devices_of(allocation: AllocationResult) -> tuple[tuple[str, str, str, str], ...]:
    """List the devices of an allocation, each with the request that it is for."""
    return tuple(
        sorted(
            (result.request, result.driver, result.pool, result.device)
            for result in allocation.devices.results
        )
    )


class FailedDevice(Struct, frozen=True, kw_only=True):
    """A device of a claim that cannot be attached."""

    device: DeviceID
    message: str
    """The condition that says so, in its driver's words; or why nobody waits longer."""


def find_failed_device(claim: ResourceClaim | None) -> FailedDevice | None:
    """Return the first device of a claim that cannot be attached; None: there is none.

    Source: resource.k8s.io/v1 `bindingFailureConditions` (KEP-5007).
    """
    if claim is None or claim.status is None or not claim.status.devices:
        return None
    for result, conditions in _list_conditions(claim):
        for kind in result.binding_failure_conditions:
            said = conditions.get(kind)
            if said is not None and _is_true(said):
                words = (f"condition {kind}", said.get("reason"), said.get("message"))
                return FailedDevice(
                    device=result.device_id, message=": ".join(filter(None, words))
                )
    return None


def find_awaited_device(claim: ResourceClaim | None) -> DeviceID | None:
    """Return the first device of a claim that is not attached yet; None: all are.

    Source: resource.k8s.io/v1 `bindingConditions` (KEP-5007).
    """
    for result, conditions in _list_conditions(claim):
        true = {kind for kind, said in conditions.items() if _is_true(said)}
        if not true >= set(result.binding_conditions):
            return result.device_id
    return None


def list_unready_devices(
    claim: ResourceClaim | None,
) -> Iterator[tuple[DeviceID, str, str]]:
    """Go through the devices of a claim that are said not to be ready.

    Each with the reason and the message of its condition `Ready`, by whoever speaks for
    the device. Source: resource.k8s.io/v1 `status.devices` (KEP-4817).
    """
    if claim is None or claim.status is None or not claim.status.devices:
        return
    for result, conditions in _list_conditions(claim):
        said = conditions.get(READY, {})
        if said and not _is_true(said):
            words = (str(said.get(field) or "") for field in ("reason", "message"))
            reason, message = words
            yield result.device_id, reason, message


def _list_conditions(
    claim: ResourceClaim | None,
) -> Iterator[tuple[DeviceRequestAllocationResult, dict[Any, dict[str, Any]]]]:
    """Go through the devices of a claim, each with its conditions by type."""
    if claim is None or claim.status is None or claim.status.allocation is None:
        return
    entries = {
        tuple(entry.get(key) for key in ("driver", "pool", "device", "shareID")): entry
        for entry in claim.status.devices
        if isinstance(entry, dict)
    }
    for result in claim.status.allocation.devices.results:
        key = (result.driver, result.pool, result.device, result.share_id)
        said = entries.get(key, {}).get("conditions") or ()
        yield result, {condition.get("type"): condition for condition in said}


def _is_true(condition: dict[str, Any]) -> bool:
    return condition.get("status") == "True"


def exclusive_devices_of(claim: ResourceClaim | None) -> frozenset[DeviceID]:
    """Return the devices that a claim holds alone."""
    if claim is None or claim.allocation is None:
        return frozenset()
    return frozenset(list_exclusive_devices(claim.allocation))


def list_exclusive_devices(allocation: AllocationResult) -> Iterator[DeviceID]:
    """Go through the devices that nobody else may hold beside an allocation."""
    for result in allocation.devices.results:
        if result.share_id is None and not result.admin_access:
            yield result.device_id
