"""Gangs of claims that no pod names: of one each, or of all on one node. Pure."""

from __future__ import annotations

import re
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

_CLAIM_FIELD = re.compile(r"spec\.members\[0\]\.claims\[(?P<index>\d+)\]\.")
"""In front of the fields of a claim of a made gang."""


def make_lone_gangs(claims: Iterable[ResourceClaim], priority: int) -> Iterator[Gang]:
    """Make a gang of each claim."""
    for claim in claims:
        yield make_claims_gang(claim.metadata.name, [claim], priority=priority)


def make_claims_gang(
    name: str, claims: list[ResourceClaim], *, node: str = "", priority: int = 0
) -> Gang:
    """Make one pod of all claims; `node`: the only one that will do."""
    labels = _make_labels([claim.metadata.name for claim in claims])
    members = tuple(
        MemberClaim(name=label, claim_name=claim.metadata.name, spec=claim.spec)
        for label, claim in zip(labels, claims, strict=True)
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


def is_of_claims(gang: Gang) -> bool:
    """True if a gang was made of claims: no Gang that anybody wrote has both fields."""
    claims = [claim for member in gang.spec.members for claim in member.claims]
    return bool(claims) and all(c.claim_name and c.spec is not None for c in claims)


def name_fields(gang: Gang, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Name fields of claims as their authors wrote them, not those of a made gang."""
    if not is_of_claims(gang):
        return reasons
    claims = [claim for member in gang.spec.members for claim in member.claims]
    return tuple(_name_field(gang, claims, reason) for reason in reasons)


def _name_field(gang: Gang, claims: list[MemberClaim], reason: Reason) -> Reason:
    found = _CLAIM_FIELD.match(reason.field)
    if found is None:
        return reason
    subject = reason.subject
    if subject == gang.metadata.name:
        subject = claims[int(found["index"])].claim_name or subject
    return structs.replace(reason, field=reason.field[found.end() :], subject=subject)


def _make_labels(names: list[str]) -> Iterator[str]:
    """Make a DNS label of each name, all different."""
    taken: set[str] = set()
    for index, name in enumerate(names):
        label = _to_label(name)
        if label in taken:
            label = f"{label[:50].strip('-')}-{index}"
        while label in taken:
            label += "x"
        taken.add(label)
        yield label


def _to_label(name: str) -> str:
    """Make a name one DNS label."""
    return name.replace(".", "-")[:63].strip("-") or "claim"
