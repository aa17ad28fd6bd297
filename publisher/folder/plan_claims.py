"""(decided claims of a gang, observed ResourceClaims) -> the steps between them.

Decides whose a claim is: what carries the gang's uid is the gang's, what is allocated
without it is somebody else's and refused. Claims that were there before us are given
back, not deleted. Knows neither the sink nor the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.allocation import AllocationResult
from contracts.claim import ResourceClaim, ResourceClaimSpec
from contracts.ids import GangUID
from contracts.messages import GangAllocated
from contracts.meta import ObjectMeta
from contracts.names import (
    ADOPTED,
    ATTEMPT,
    FINALIZER,
    GANG,
    GANG_UID,
    OURS,
    SPEC_OMITTED,
)
from publisher.steps import Create, Delete, ObjectKey, Step, Update, key_of


class ClaimSteps(Struct, frozen=True, kw_only=True):
    """Steps to take, or reasons why none may be taken."""

    steps: tuple[Step[ResourceClaim], ...] = ()
    refusals: tuple[str, ...] = ()


def plan_claims(
    decided: Sequence[ResourceClaim],
    observed: Iterable[ResourceClaim],
    gang: GangUID,
    *,
    any_attempt: bool = False,
) -> ClaimSteps:
    """Plan what makes the gang's claims exactly the decided ones.

    `observed` holds at least the gang's claims and those of the decided names. Nothing
    decided: whatever the gang has is given up. `any_attempt`: what has the decided
    allocation is left as it is, whatever attempt it names.
    """
    claims_by_key = {key_of(claim): claim for claim in observed}
    steps: list[Step[ResourceClaim]] = []
    refusals: list[str] = []
    # First every claim that was decided; one refusal stops the whole gang.
    for claim in decided:
        there = claims_by_key.pop(key_of(claim), None)
        if any_attempt and there is not None and _has_allocation(there, claim, gang):
            continue
        step = _plan_step(claim, there, gang)
        if isinstance(step, str):
            refusals.append(step)
        elif step is not None:
            steps.append(step)
    if refusals:
        return ClaimSteps(refusals=tuple(refusals))
    # Then what the gang has beyond that, which is given up before.
    surplus = [
        claims_by_key[key]
        for key in sorted(claims_by_key)
        if _owner_of(claims_by_key[key]) == gang
    ]
    return ClaimSteps(steps=(*map(_give_up, surplus), *steps))


def is_written(
    decision: GangAllocated,
    observed: Iterable[ResourceClaim],
    *,
    any_attempt: bool = False,
) -> bool:
    """True if exactly what was decided is there; `observed` is the gang's claims.

    `any_attempt`: whatever attempt they name.
    """
    claims_by_key = {key_of(claim): claim for claim in observed}
    decided = {
        ObjectKey(
            "ResourceClaim", claim.ref.namespace, claim.ref.name
        ): claim.allocation
        for member in decision.members
        for claim in member.claims
    }
    attempt = str(decision.attempt)
    return claims_by_key.keys() == decided.keys() and all(
        (any_attempt or claim.metadata.annotations.get(ATTEMPT) == attempt)
        and _is_same(claim.allocation, decided[key])
        for key, claim in claims_by_key.items()
    )


def _plan_step(
    decided: ResourceClaim, observed: ResourceClaim | None, gang: GangUID
) -> Step[ResourceClaim] | str | None:
    """Return what to do about one claim: a step, a refusal, or nothing."""
    if observed is None:
        return Create(decided)
    name = f"{decided.metadata.namespace}/{decided.metadata.name}"
    if observed.metadata.deletion_timestamp:
        return f"claim {name} is being deleted"
    uids = {decided.metadata.uid, observed.metadata.uid} - {""}
    if len(uids) > 1:
        return f"claim {name} is not the one that was decided for"
    owner, allocated = _owner_of(observed), observed.allocation
    if owner != gang and allocated is not None:
        holder = f"gang {owner}" if owner else "somebody else"
        return f"claim {name} is already allocated for {holder}"
    merged = _merge_allocation(decided, observed, adopted=owner != gang)
    return None if merged == observed else Update(merged)


def _has_allocation(
    observed: ResourceClaim, decided: ResourceClaim, gang: GangUID
) -> bool:
    """True if a claim is the gang's, and is allocated as decided."""
    is_ours = _owner_of(observed) == gang
    return is_ours and _is_same(observed.allocation, decided.allocation)


def _merge_allocation(
    decided: ResourceClaim, observed: ResourceClaim, *, adopted: bool
) -> ResourceClaim:
    """Put the decided allocation on the claim that is there.

    Equal allocations keep their time: it cannot be changed once it is set.
    """
    old, new = observed.metadata, decided.metadata
    kept = {
        key: value
        for key, value in old.annotations.items()
        if not key.startswith(OURS) or key == ADOPTED
    }
    annotations = kept | new.annotations | ({ADOPTED: "true"} if adopted else {})
    spec = decided.spec
    keeps = ADOPTED in annotations or SPEC_OMITTED in annotations
    if keeps and observed.spec != ResourceClaimSpec():
        spec = observed.spec
        annotations.pop(SPEC_OMITTED, None)
    finalizers = old.finalizers
    if FINALIZER not in finalizers:
        finalizers = (*finalizers, FINALIZER)
    metadata: ObjectMeta = replace(
        old,
        uid=old.uid or new.uid,
        labels=old.labels | new.labels,
        annotations=annotations,
        finalizers=finalizers,
    )
    same = _is_same(observed.allocation, decided.allocation)
    status = observed.status if same else decided.status
    return ResourceClaim(metadata=metadata, spec=spec, status=status)


def _give_up(claim: ResourceClaim) -> Step[ResourceClaim]:
    if ADOPTED not in claim.metadata.annotations:
        return Delete(claim)
    annotations = {
        key: value
        for key, value in claim.metadata.annotations.items()
        if not key.startswith(OURS)
    }
    labels = {key: value for key, value in claim.metadata.labels.items() if key != GANG}
    finalizers = tuple(name for name in claim.metadata.finalizers if name != FINALIZER)
    metadata: ObjectMeta = replace(
        claim.metadata, annotations=annotations, labels=labels, finalizers=finalizers
    )
    return Update(replace(claim, metadata=metadata, status=None))


def _owner_of(claim: ResourceClaim) -> str:
    return claim.metadata.annotations.get(GANG_UID, "")


def _is_same(one: AllocationResult | None, other: AllocationResult | None) -> bool:
    """True if two allocations are equal but for their time."""
    if one is None or other is None:
        return one is other
    untimed: AllocationResult = replace(
        one, allocation_timestamp=other.allocation_timestamp
    )
    return untimed == other
