"""What a ResourceClaim says: what it holds, for whom, and whether we prepared it.

Stands alone so that plans read claims in one way. Pure.
"""

from __future__ import annotations

from contracts.allocation import AllocationResult
from contracts.claim import ResourceClaim
from contracts.names import FINALIZER, MANAGED

MOST_RESERVED = 256
"""So many users may a claim have at a time (DRA: ResourceClaimReservedForMaxSize)."""


def reserved_uids(claim: ResourceClaim) -> frozenset[str]:
    """Return the uids of those who may use a claim."""
    if claim.status is None:
        return frozenset()
    return frozenset(user.uid for user in claim.status.reserved_for)


def is_prepared(claim: ResourceClaim) -> bool:
    """Whether a claim has the finalizer, from us."""
    meta = claim.metadata
    return FINALIZER in meta.finalizers and MANAGED in meta.annotations


def is_same_allocation(one: AllocationResult, other: AllocationResult) -> bool:
    """Whether two allocations are of the same devices for the same requests.

    A server drops fields of features that are off and rewrites quantities, so nothing
    else is compared.
    """
    return devices_of(one) == devices_of(other)


def devices_of(allocation: AllocationResult) -> tuple[tuple[str, str, str, str], ...]:
    """List the devices of an allocation, each with the request that it is for."""
    return tuple(
        sorted(
            (result.request, result.driver, result.pool, result.device)
            for result in allocation.devices.results
        )
    )
