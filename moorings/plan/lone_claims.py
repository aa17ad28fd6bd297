"""Gangs of claims that no pod names: of one each, or of all on one node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import uuid5

from msgspec import structs

from contracts.allocation import Reason
from contracts.claim import ResourceClaim
from contracts.gang import Gang, GangSpec, Member, MemberClaim, MemberNode
from contracts.ids import NodeName
from contracts.meta import ObjectMeta
from moorings.plan.pods import DEFAULT_NAMESPACE
from moorings.plan.replicas import UUIDS

_CLAIM_FIELDS = "spec.members[0].claims[0]."
"""In front of the fields of the only claim of a gang."""


def make_lone_gangs(claims: Iterable[ResourceClaim], priority: int) -> Iterator[Gang]:
    """Make a gang of each claim."""
    for claim in claims:
        yield make_claims_gang(claim.metadata.name, [claim], priority=priority)


def make_claims_gang(
    name: str, claims: list[ResourceClaim], *, node: str = "", priority: int = 0
) -> Gang:
    """Make one pod of all claims; `node`: the only one that will do."""
    members = tuple(
        MemberClaim(
            name=_to_label(claim.metadata.name)
            if len(claims) == 1
            else f"claim-{index}",
            claim_name=claim.metadata.name,
            spec=claim.spec,
        )
        for index, claim in enumerate(claims)
    )
    namespace = claims[0].metadata.namespace if claims else ""
    uid = str(uuid5(UUIDS, f"claim/{namespace or DEFAULT_NAMESPACE}/{name}"))
    member = Member(
        name="claim", claims=members, node=MemberNode(node_name=NodeName(node))
    )
    return Gang(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=uid),
        spec=GangSpec(members=(member,), priority=priority),
    )


def name_fields(gang: Gang, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Name fields of a claim as its author wrote them, not those of its made gang."""
    claims = [claim for member in gang.spec.members for claim in member.claims]
    if len(claims) != 1 or not claims[0].claim_name or claims[0].spec is None:
        return reasons  # no Gang that anybody wrote has both
    return tuple(
        structs.replace(reason, field=reason.field.removeprefix(_CLAIM_FIELDS))
        for reason in reasons
    )


def _to_label(name: str) -> str:
    """Make a name one DNS label."""
    return name.replace(".", "-")[:63].strip("-") or "claim"
