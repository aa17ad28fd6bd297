"""Which waiting pods are submitted now as a gang, or why not yet.

Pods wait until the gang is whole: as many as the Gang object or the annotation
`moorings.dev/gang-size` says, those that run or have succeeded counted with them, so
that a pod that replaces a failed one is decided alone. A Gang object and its pods must
say the same. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct
from msgspec.structs import replace

from contracts.allocation import Reason
from contracts.gang import MAX_MEMBERS, Gang, GangConstraint, GangSpec
from contracts.ids import GangUID
from contracts.messages import Place
from contracts.meta import ObjectMeta
from contracts.names import GANG, GANG_SIZE
from contracts.validate.names import MAX_LABEL, check_dns_subdomain
from contracts.workload import Pod
from publisher.gangs.compare import difference, unnamed_of
from publisher.gangs.members import Members, Owns, members_of
from publisher.gangs.readiness import missing, not_free
from publisher.gangs.view import View
from publisher.gangs.waiting import Waiting

_DIGEST = 10
"""Characters that tell shortened names apart."""
_UUIDS = uuid5(NAMESPACE_URL, GANG)


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
    alone: bool = False
    """Whether they do not wait for others: their gates are open already."""
    gang: Gang | None = None
    """The Gang object."""
    generation: int = 1
    """Greater than that of every submission that asked for one of the pods before."""


def assemble(gathered: Gathered, view: View, owns: Owns) -> Ready | Waiting:
    """Say what to submit of these pods."""
    pods, gang = gathered.pods, gathered.gang
    name = pods[0].metadata.labels.get(GANG)
    for violation in () if name is None else check_dns_subdomain(name, f"label {GANG}"):
        return Waiting(reason="GangNameInvalid", message=str(violation))
    size = 1 if gathered.alone else _size(gathered)
    if isinstance(size, Waiting):
        return size
    here = len(pods) + gathered.others
    if here < size:
        return Waiting(reason="PodsMissing", message=f"{here} of {size} pods are there")
    if len(pods) > MAX_MEMBERS:
        message = f"{len(pods)} pods wait; a gang has at most {MAX_MEMBERS}"
        return Waiting(reason="PodsTooMany", message=message)
    busy = missing(pods, view) or not_free(pods, view, owns)
    if busy is not None:
        return busy
    if gang is not None:
        differs = difference(gang, pods, view, owns, whole=not gathered.others)
        if differs:
            return Waiting(reason="ClaimsDiffer", message=differs)
    found = members_of(pods, view.claim, owns, unnamed_of(gang))
    if isinstance(found, Reason):
        return Waiting(reason=str(found.rule), message=str(found))
    looks = _looks(gang, found)
    if looks:
        return Waiting(reason="ClaimsDiffer", message=looks)
    return Ready(gang=_gang(gathered, found), places=found.places)


def gang_uid(name: str, generation: int, pods: Iterable[str]) -> GangUID:
    """Derive the uid of a gang from its name (`namespace/name`) and its pods' uids.

    So two publishers submit the same. What is asked for again is another gang.
    """
    text = "/".join((name, str(generation), *sorted(pods)))
    return GangUID(str(uuid5(_UUIDS, text)))


def _gang(gathered: Gathered, found: Members) -> Gang:
    first = gathered.pods[0]
    label = first.metadata.labels.get(GANG, "")
    meta = ObjectMeta(
        name=label or _short(first.metadata.name),
        namespace=first.metadata.namespace,
        labels={GANG: label} if label else {},
        generation=gathered.generation,
    )
    if gathered.gang is None:
        priority = max(pod.spec.priority or 0 for pod in gathered.pods)
        return Gang(
            metadata=meta, spec=GangSpec(priority=priority, members=found.members)
        )
    spec = replace(
        gathered.gang.spec,
        members=found.members,
        constraints=_constraints(gathered.gang, found),
        hold=False,
    )
    return Gang(metadata=meta, spec=spec)


def _short(name: str) -> str:
    """Make a pod's name one that a gang may have: the value of a label."""
    if len(name) <= MAX_LABEL:
        return name
    digest = uuid5(_UUIDS, name).hex[:_DIGEST]
    return f"{name[: MAX_LABEL - _DIGEST - 1].rstrip('-.')}-{digest}"


def _constraints(gang: Gang, found: Members) -> tuple[GangConstraint, ...]:
    """Keep what is about these pods: those that replace others may be of one member."""
    names = {member.name for member in found.members}
    kept = []
    for item in gang.spec.constraints:
        requests = tuple(r for r in item.requests if r.partition("/")[0] in names)
        if requests or not item.requests:
            kept.append(replace(item, requests=requests))
    return tuple(kept)


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
    digits = size.isascii() and size.isdecimal() and len(size) <= len(str(MAX_MEMBERS))
    if not digits or not 1 <= int(size) <= MAX_MEMBERS:
        return Waiting(
            reason="GangSizeInvalid",
            message=f"annotation {GANG_SIZE}: {size[:40]!r} is no number from 1 to "
            f"{MAX_MEMBERS}",
        )
    return int(size)


def _looks(gang: Gang | None, found: Members) -> str:
    """Name a member of a Gang object whose pods are not equal; empty: all are."""
    said = () if gang is None else gang.spec.members
    names = {member.name for member in said}
    for member in found.members:
        if said and member.name not in names:
            return f"pods of one member ask for different things: {member.name}"
    return ""
