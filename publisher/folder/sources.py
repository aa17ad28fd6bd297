"""Where the spec of each claim of a gang comes from.

A claim is written out in the submission, made from a template, or exists by name; the
latter two are known only where somebody put them on the bus. Pure: says which objects
to look up, and takes what was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from contracts.claim import ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from contracts.gang import MemberClaim
from contracts.messages import SubmitGang
from publisher.steps import ObjectKey

TEMPLATE = "ResourceClaimTemplate"
CLAIM = "ResourceClaim"
UNKNOWN = "Unknown"
ObjectsByKey = Mapping[ObjectKey, ResourceClaim | ResourceClaimTemplate]
"""Objects of the cluster that the bus knows."""


class ClaimSource(Struct, frozen=True, kw_only=True):
    """A claim's spec, and the object that it is from."""

    spec: ResourceClaimSpec | None
    """None: not known here."""
    origin: str = ""
    """`Kind name`; empty: the submission itself."""


ClaimSources = Mapping[tuple[str, str], ClaimSource]
"""By names of member and claim."""


def find_references(submission: SubmitGang) -> frozenset[ObjectKey]:
    """Name the templates and claims that the gang refers to."""
    keys = (_key_of_claim(submission, claim) for _, claim in _list_claims(submission))
    return frozenset(key for key in keys if key is not None)


def find_sources(
    submission: SubmitGang, objects: ObjectsByKey
) -> dict[tuple[str, str], ClaimSource]:
    """Find the spec of every claim of every member."""
    return {
        (member, claim.name): _find_source(submission, claim, objects)
        for member, claim in _list_claims(submission)
    }


def _list_claims(submission: SubmitGang) -> Iterator[tuple[str, MemberClaim]]:
    for member in submission.gang.spec.members:
        for claim in member.claims:
            yield member.name, claim


def _key_of_claim(submission: SubmitGang, claim: MemberClaim) -> ObjectKey | None:
    namespace = submission.gang.metadata.namespace
    if claim.claim_name:
        return ObjectKey(CLAIM, namespace, claim.claim_name)
    if claim.spec is None and claim.template_name:
        return ObjectKey(TEMPLATE, namespace, claim.template_name)
    return None


def _find_source(
    submission: SubmitGang, claim: MemberClaim, objects: ObjectsByKey
) -> ClaimSource:
    key = _key_of_claim(submission, claim)
    if key is None:
        return ClaimSource(spec=claim.spec, origin="" if claim.spec else UNKNOWN)
    origin = f"{key.kind} {key.name}"
    match objects.get(key):
        case ResourceClaim(spec=spec):
            return ClaimSource(spec=spec, origin=origin)
        case ResourceClaimTemplate(spec=template):
            return ClaimSource(spec=template.spec, origin=origin)
        case None:
            return ClaimSource(spec=None, origin=origin)
