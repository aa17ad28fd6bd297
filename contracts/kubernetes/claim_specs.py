"""The specs of claims in whatever has or makes claims: claims, templates, Gangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from msgspec.structs import replace

from contracts.claim import ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from contracts.gang import Gang, Member

_Holder = TypeVar("_Holder", bound=ResourceClaim | ResourceClaimTemplate | Gang)
_Change = Callable[[ResourceClaimSpec], ResourceClaimSpec]


def list_claim_specs(value: Any) -> Iterator[ResourceClaimSpec]:
    """Go through the specs of claims in an object; anything else has none."""
    if isinstance(value, ResourceClaim):
        yield value.spec
    elif isinstance(value, ResourceClaimTemplate):
        yield value.spec.spec
    elif isinstance(value, Gang):
        for member in value.spec.members:
            for claim in member.claims:
                if claim.spec is not None:
                    yield claim.spec


def change_claim_specs(value: _Holder, change: _Change) -> _Holder:
    """Return an object with each spec of its claims changed."""
    if isinstance(value, ResourceClaim):
        return replace(value, spec=change(value.spec))
    if isinstance(value, ResourceClaimTemplate):
        return replace(value, spec=replace(value.spec, spec=change(value.spec.spec)))
    members = tuple(_change_member(member, change) for member in value.spec.members)
    return replace(value, spec=replace(value.spec, members=members))


def _change_member(member: Member, change: _Change) -> Member:
    claims = tuple(
        claim if claim.spec is None else replace(claim, spec=change(claim.spec))
        for claim in member.claims
    )
    return replace(member, claims=claims)
