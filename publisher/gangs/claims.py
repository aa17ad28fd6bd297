"""What a ResourceClaim says: what it holds, for whom, and whether it is ready for us.

Stands alone so that plans read claims in one way. Pure.
"""

from __future__ import annotations

from contracts.allocation import AllocationResult
from contracts.claim import ResourceClaim
from contracts.device import NODE_FIELD, NodeSelector
from contracts.ids import NodeName
from contracts.names import FINALIZER, MANAGED

MOST_RESERVED = 256
"""So many users may a claim have at a time (DRA: ResourceClaimReservedForMaxSize)."""


def reserved_uids(claim: ResourceClaim) -> frozenset[str]:
    """Give the uids of those who may use a claim."""
    if claim.status is None:
        return frozenset()
    return frozenset(item.uid for item in claim.status.reserved_for)


def is_prepared(claim: ResourceClaim) -> bool:
    """Whether a claim has the finalizer, from us."""
    meta = claim.metadata
    return FINALIZER in meta.finalizers and MANAGED in meta.annotations


def is_same(one: AllocationResult, other: AllocationResult) -> bool:
    """Whether two allocations are of the same devices for the same requests.

    A server drops fields of features that are off and rewrites quantities, so nothing
    else is compared.
    """
    return given(one) == given(other)


def given(allocation: AllocationResult) -> tuple[tuple[str, str, str, str], ...]:
    """Say which devices an allocation gives to which requests."""
    return tuple(
        sorted(
            (item.request, item.driver, item.pool, item.device)
            for item in allocation.devices.results
        )
    )


def only_node(selector: NodeSelector | None) -> NodeName:
    """Give the one node that is selected by its name; empty: it is not that simple."""
    terms = () if selector is None else selector.node_selector_terms
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields) != 1:
        return NodeName("")
    (field,) = terms[0].match_fields
    if (field.key, field.operator, len(field.values)) != (NODE_FIELD, "In", 1):
        return NodeName("")
    return NodeName(field.values[0])
