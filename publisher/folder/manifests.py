"""A decision -> the ResourceClaims that Kubernetes should hold, and their JSON.

Decides which facts of a decision become labels and annotations and how a claim looks
whose spec is not known. Stands alone so that every sink writes the same objects; must
not know what is already there.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msgspec.structs import replace

from contracts.claim import ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from contracts.ids import ClaimUID
from contracts.kubernetes.decode import to_kubernetes
from contracts.kubernetes.defaults import default_claim_spec
from contracts.messages import ClaimAllocated, GangAllocated, MemberAllocated
from contracts.meta import ObjectMeta
from contracts.names import (
    ATTEMPT,
    CLAIM_UID,
    FINALIZER,
    GANG,
    GANG_UID,
    INDEX,
    MEMBER,
    SOLVE,
    SPEC_FROM,
    SPEC_OMITTED,
)
from contracts.validate import validate
from contracts.validate.names import check_label_value, check_object_name
from publisher.errors import DecisionError
from publisher.folder.sources import UNKNOWN, ClaimSource, ClaimSources
from publisher.steps import ObjectKey, Published, key_of

_DERIVED_VERSION = 5
"""Of UUIDs made from names; Kubernetes draws its own at random."""


def build_claims(
    decision: GangAllocated, sources: ClaimSources, now: str
) -> tuple[ResourceClaim, ...]:
    """Write down every claim of a gang, in the order of the decision.

    `now` is RFC 3339, whole seconds, UTC. No sources at all: the submission is lost.

    Raises:
        DecisionError: the decision does not fit its gang, or is no valid object.
    """
    claims: dict[ObjectKey, ResourceClaim] = {}
    for member in decision.members:
        for allocated in member.claims:
            source = _source_of(decision, member, allocated, sources)
            claim = _build_decided_claim(decision, member, allocated, source, now)
            first = claims.setdefault(key_of(claim), claim)
            if first.status != claim.status:
                reason = f"{allocated.ref}: two different allocations"
                raise DecisionError(decision.uid, reason)
    for claim in claims.values():
        _check_claim(decision, claim)
    return tuple(claims.values())


def to_document(obj: Published) -> dict[str, Any]:
    """Write an object as one JSON document, its status included."""
    body = to_kubernetes(obj)
    if obj.metadata.annotations.get(SPEC_OMITTED):
        del body["spec"]
    return body


def _source_of(
    decision: GangAllocated,
    member: MemberAllocated,
    allocated: ClaimAllocated,
    sources: ClaimSources,
) -> ClaimSource:
    if not sources:
        return ClaimSource(spec=None, origin=UNKNOWN)
    source = sources.get((member.member, allocated.claim))
    if source is None:
        reason = f"the gang has no claim {member.member}/{allocated.claim}"
        raise DecisionError(decision.uid, reason)
    return source


def _build_decided_claim(
    decision: GangAllocated,
    member: MemberAllocated,
    allocated: ClaimAllocated,
    source: ClaimSource,
    now: str,
) -> ResourceClaim:
    """Build the ResourceClaim of a decision that is written into the folder."""
    ref = allocated.ref
    derived = _is_derived(ref.uid)
    annotations = {
        GANG_UID: decision.uid,
        MEMBER: member.member,
        INDEX: str(member.index),
        ATTEMPT: str(decision.attempt),
        SOLVE: decision.solve,
    }
    if derived:
        annotations[CLAIM_UID] = ref.uid
    if source.origin:
        annotations[SPEC_FROM] = source.origin
    if source.spec is None:
        annotations[SPEC_OMITTED] = "true"
    spec = source.spec or ResourceClaimSpec()
    labelled = not any(check_label_value(decision.name, GANG))
    return ResourceClaim(
        metadata=ObjectMeta(
            name=ref.name,
            namespace=ref.namespace,
            uid="" if derived else ref.uid,
            labels={GANG: decision.name} if labelled else {},
            annotations=annotations,
            finalizers=(FINALIZER,),
        ),
        spec=default_claim_spec(spec),
        status=ResourceClaimStatus(
            allocation=replace(allocated.allocation, allocation_timestamp=now)
        ),
    )


def _check_claim(decision: GangAllocated, claim: ResourceClaim) -> None:
    """Refuse what the API server would refuse; an unknown spec is accepted."""
    metadata = claim.metadata
    if metadata.namespace != decision.namespace:
        reason = f"claim in namespace {metadata.namespace!r}"
        raise DecisionError(decision.uid, reason)
    if claim.metadata.annotations.get(SPEC_OMITTED):
        allocation = claim.allocation
        violations = [
            *check_object_name(metadata),
            *(validate(allocation) if allocation else ()),
        ]
    else:
        violations = list(validate(claim))
    if violations:
        name = f"{metadata.namespace}/{metadata.name}"
        raise DecisionError(decision.uid, f"ResourceClaim {name}: {violations[0]}")


def _is_derived(uid: ClaimUID) -> bool:
    """True if the solver made a uid from names: Kubernetes draws its own."""
    try:
        return UUID(uid).version == _DERIVED_VERSION
    except ValueError:
        return False
