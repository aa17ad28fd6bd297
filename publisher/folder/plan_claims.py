"""(wanted claims of a gang, observed ResourceClaims) -> the steps between them.

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


class ClaimPlan(Struct, frozen=True, kw_only=True):
    """Steps to take, or reasons why none may be taken."""

    steps: tuple[Step[ResourceClaim], ...] = ()
    refusals: tuple[str, ...] = ()


def plan_claims(
    wanted: Sequence[ResourceClaim], observed: Iterable[ResourceClaim], gang: GangUID
) -> ClaimPlan:
    """Plan what makes the gang's claims exactly the wanted ones.

    `observed` holds at least the gang's claims and those of the wanted names. Nothing
    wanted: whatever the gang has is given up.
    """
    found = {key_of(claim): claim for claim in observed}
    steps: list[Step[ResourceClaim]] = []
    refusals: list[str] = []
    for claim in wanted:
        step = _step(claim, found.pop(key_of(claim), None), gang)
        if isinstance(step, str):
            refusals.append(step)
        elif step is not None:
            steps.append(step)
    if refusals:
        return ClaimPlan(refusals=tuple(refusals))
    given_up = [found[key] for key in sorted(found) if _owner(found[key]) == gang]
    return ClaimPlan(steps=(*map(_give_up, given_up), *steps))


def is_written(decision: GangAllocated, observed: Iterable[ResourceClaim]) -> bool:
    """Whether exactly what was decided is there; `observed` is the gang's claims."""
    found = {key_of(claim): claim for claim in observed}
    decided = {
        ObjectKey("ResourceClaim", item.ref.namespace, item.ref.name): item.allocation
        for member in decision.members
        for item in member.claims
    }
    return found.keys() == decided.keys() and all(
        claim.metadata.annotations.get(ATTEMPT) == str(decision.attempt)
        and _same(_allocation(claim), decided[key])
        for key, claim in found.items()
    )


def _step(
    wanted: ResourceClaim, observed: ResourceClaim | None, gang: GangUID
) -> Step[ResourceClaim] | str | None:
    """Say what to do about one claim: a step, a refusal, or nothing."""
    if observed is None:
        return Create(wanted)
    name = f"{wanted.metadata.namespace}/{wanted.metadata.name}"
    if observed.metadata.deletion_timestamp:
        return f"claim {name} is being deleted"
    uids = {wanted.metadata.uid, observed.metadata.uid} - {""}
    if len(uids) > 1:
        return f"claim {name} is another one than was decided for"
    owner, allocated = _owner(observed), _allocation(observed)
    if owner != gang and allocated is not None:
        holder = f"gang {owner}" if owner else "somebody else"
        return f"claim {name} is already allocated for {holder}"
    merged = _merged(wanted, observed, adopted=owner != gang)
    return None if merged == observed else Update(merged)


def _merged(
    wanted: ResourceClaim, observed: ResourceClaim, *, adopted: bool
) -> ResourceClaim:
    """Put the wanted allocation on the claim that is there.

    Equal allocations keep their time: it cannot be changed once it is set.
    """
    before, after = observed.metadata, wanted.metadata
    kept = {
        key: value
        for key, value in before.annotations.items()
        if not key.startswith(OURS) or key == ADOPTED
    }
    annotations = kept | after.annotations | ({ADOPTED: "true"} if adopted else {})
    spec = wanted.spec
    keeps = ADOPTED in annotations or SPEC_OMITTED in annotations
    if keeps and observed.spec != ResourceClaimSpec():
        spec = observed.spec
        annotations.pop(SPEC_OMITTED, None)
    finalizers = before.finalizers
    if FINALIZER not in finalizers:
        finalizers = (*finalizers, FINALIZER)
    metadata: ObjectMeta = replace(
        before,
        uid=before.uid or after.uid,
        labels=before.labels | after.labels,
        annotations=annotations,
        finalizers=finalizers,
    )
    same = _same(_allocation(observed), _allocation(wanted))
    status = observed.status if same else wanted.status
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


def _owner(claim: ResourceClaim) -> str:
    return claim.metadata.annotations.get(GANG_UID, "")


def _allocation(claim: ResourceClaim) -> AllocationResult | None:
    return None if claim.status is None else claim.status.allocation


def _same(one: AllocationResult | None, other: AllocationResult | None) -> bool:
    """Whether two allocations are equal but for their time."""
    if one is None or other is None:
        return one is other
    untimed: AllocationResult = replace(
        one, allocation_timestamp=other.allocation_timestamp
    )
    return untimed == other
