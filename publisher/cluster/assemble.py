"""Which waiting pods are submitted now as a gang, or why not yet.

Pods wait until the gang is whole: as many as the Gang object or the annotation
`moorings.dev/gang-size` says, those that run or have succeeded counted with them, so
that a pod that replaces a failed one is decided alone. A Gang object and its pods must
say the same. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct
from msgspec.structs import replace

from contracts.allocation import Reason
from contracts.defaults import default_claim_spec
from contracts.gang import Gang, GangSpec, Member
from contracts.ids import GangUID
from contracts.messages import Place
from contracts.meta import ObjectMeta
from contracts.workload import Pod
from publisher.cluster.members import Claims, Members, Owns, members_of
from publisher.cluster.view import claim_keys
from publisher.names import GANG, GANG_SIZE

_UUIDS = uuid5(NAMESPACE_URL, "moorings.dev/gang")
_MAX_SIZE = 5000
_MAX_USERS = 256
"""Of one claim (DRA: ResourceClaimReservedForMaxSize)."""


class Waiting(Struct, frozen=True, kw_only=True):
    """Why pods are not submitted yet, for the author of the pods."""

    reason: str
    """One word, such as `PodsMissing`."""
    message: str


class Ready(Struct, frozen=True, kw_only=True):
    """What to submit."""

    gang: Gang
    places: dict[str, tuple[Place, ...]]


class Gathered(Struct, frozen=True, kw_only=True):
    """The pods of one gang that are not submitted yet, and what is known beside."""

    pods: tuple[Pod, ...]
    """Gated, not over."""
    others: int
    """Pods of the gang that are submitted, run or have succeeded."""
    gang: Gang | None = None
    """The Gang object."""


def assemble(gathered: Gathered, claims: Claims, owns: Owns) -> Ready | Waiting:
    """Say what to submit of these pods."""
    pods = gathered.pods
    size = _size(gathered)
    if isinstance(size, Waiting):
        return size
    if len(pods) + gathered.others < size:
        here = len(pods) + gathered.others
        return Waiting(reason="PodsMissing", message=f"{here} of {size} pods are there")
    if len(pods) > _MAX_SIZE:
        message = f"{len(pods)} pods wait; a gang has at most {_MAX_SIZE}"
        return Waiting(reason="PodsTooMany", message=message)
    missing = _missing(pods, claims)
    if missing is not None:
        return missing
    crowded = _crowded(pods, claims)
    if crowded is not None:
        return crowded
    found = members_of(pods, claims, owns)
    if isinstance(found, Reason):
        return Waiting(reason=str(found.rule), message=str(found))
    if gathered.gang is not None and not gathered.others:
        differs = _difference(gathered.gang, found, pods)
        if differs:
            return Waiting(reason="ClaimsDiffer", message=differs)
    return Ready(gang=_gang(gathered, found), places=found.places)


def gang_uid(name: str, pods: Iterable[str]) -> GangUID:
    """Derive the uid of a gang from its name (`namespace/name`) and its pods' uids."""
    return GangUID(str(uuid5(_UUIDS, "/".join((name, *sorted(pods))))))


def _gang(gathered: Gathered, found: Members) -> Gang:
    first = gathered.pods[0]
    label = first.metadata.labels.get(GANG, "")
    meta = ObjectMeta(
        name=label or first.metadata.name,
        namespace=first.metadata.namespace,
        labels={GANG: label} if label else {},
    )
    if gathered.gang is None:
        priority = max(pod.spec.priority or 0 for pod in gathered.pods)
        return Gang(
            metadata=meta, spec=GangSpec(priority=priority, members=found.members)
        )
    spec = replace(gathered.gang.spec, members=found.members, hold=False)
    return Gang(metadata=meta, spec=spec)


def _size(gathered: Gathered) -> int | Waiting:
    """Say how many pods make the gang whole."""
    if gathered.gang is not None:
        return sum(member.count for member in gathered.gang.spec.members)
    pods = gathered.pods
    if not pods[0].metadata.labels.get(GANG):
        return 1
    sizes = {pod.metadata.annotations.get(GANG_SIZE, "") for pod in pods}
    if len(sizes) > 1:
        said = ", ".join(sorted(size or "none" for size in sizes))
        return Waiting(
            reason="GangSizeInvalid",
            message=f"the pods disagree on the annotation {GANG_SIZE}: {said}",
        )
    (size,) = sizes
    if not size:
        return Waiting(
            reason="GangSizeMissing",
            message=f"there is no Gang object {pods[0].metadata.labels[GANG]!r}, and "
            f"the pods have no annotation {GANG_SIZE}",
        )
    digits = size.isascii() and size.isdecimal() and len(size) <= len(str(_MAX_SIZE))
    if not digits or not 1 <= int(size) <= _MAX_SIZE:
        return Waiting(
            reason="GangSizeInvalid",
            message=f"annotation {GANG_SIZE}: {size[:40]!r} is no number from 1 to "
            f"{_MAX_SIZE}",
        )
    return int(size)


def _missing(pods: Sequence[Pod], claims: Claims) -> Waiting | None:
    """Name a claim that is not there, or on its way out."""
    for pod in pods:
        known = claim_keys(pod)
        needless = {
            item.name
            for item in pod.status.resource_claim_statuses
            if item.resource_claim_name is None
        }
        for item in pod.spec.resource_claims:
            if item.name in needless:
                continue
            key = known.get(item.name)
            claim = None if key is None else claims(key)
            if claim is None:
                name = item.resource_claim_name or f"{item.name} (generated)"
                return Waiting(
                    reason="ClaimsMissing",
                    message=f"pod {pod.metadata.name}: no ResourceClaim {name} yet",
                )
            if claim.metadata.deletion_timestamp:
                return Waiting(
                    reason="ClaimsMissing",
                    message=f"pod {pod.metadata.name}: ResourceClaim "
                    f"{claim.metadata.name} is being deleted",
                )
    return None


def _crowded(pods: Sequence[Pod], claims: Claims) -> Waiting | None:
    """Name a claim that more would use than the API server lets."""
    users: dict[str, set[str]] = {}
    for pod in pods:
        for key in claim_keys(pod).values():
            users.setdefault(key, set()).add(pod.metadata.uid)
    for key, uids in users.items():
        claim = claims(key)
        if claim is not None and claim.status is not None:
            uids |= {item.uid for item in claim.status.reserved_for}
        if len(uids) > _MAX_USERS:
            name = key.partition("/")[2]
            return Waiting(
                reason="TooManyUsers",
                message=f"{len(uids)} pods would use ResourceClaim {name}; a claim is "
                f"for {_MAX_USERS} at most",
            )
    return None


def _difference(gang: Gang, found: Members, pods: Sequence[Pod]) -> str:
    """Say where a Gang object and its pods say different things; empty: nowhere."""
    said = {member.name: member for member in gang.spec.members}
    seen = {member.name: member for member in found.members}
    for name in sorted(seen.keys() - said.keys()):
        return f"the Gang has no member like the pods of {name}"
    for name, member in said.items():
        theirs = seen.get(name)
        pods_seen = 0 if theirs is None else theirs.count
        if theirs is None or pods_seen != member.count:
            return f"member {name}: {member.count} pods wanted, {pods_seen} are there"
        text = _claims_difference(member, theirs, pods)
        if text:
            return f"member {name}: {text}"
    return ""


def _claims_difference(said: Member, seen: Member, pods: Sequence[Pod]) -> str:
    theirs = {claim.name: claim for claim in seen.claims}
    if {claim.name for claim in said.claims} != theirs.keys():
        mine = ", ".join(claim.name for claim in said.claims) or "none"
        return f"the Gang names claims {mine}, the pods {', '.join(theirs) or 'none'}"
    sources = {
        item.name: item.resource_claim_template_name or item.resource_claim_name or ""
        for pod in pods
        for item in pod.spec.resource_claims
    }
    for claim in said.claims:
        named = claim.template_name or claim.claim_name
        if named and sources.get(claim.name) != named:
            return f"claim {claim.name} is from {sources.get(claim.name)}, not {named}"
        spec = theirs[claim.name].spec
        if claim.spec is not None and spec is not None:
            wanted = default_claim_spec(claim.spec)
            if wanted != default_claim_spec(spec):
                return f"claim {claim.name}: the pods' claims ask for something else"
    return ""
