"""(decision, observed claims) -> the next write of each claim, or why none may be.

A claim that is not allocated gets its finalizer, then its allocation; one that holds
just what was decided is done; everything else is somebody else's and refused. The API
server checks neither devices nor owners, so this is where two claims of one device
meet. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from contracts.allocation import AllocationResult
from contracts.claim import ResourceClaim
from contracts.ids import NodeName
from contracts.messages import (
    GangAllocated,
    MemberAllocated,
    Place,
    PodRef,
    SubmitGang,
)
from publisher.cluster import patches
from publisher.cluster.patches import Patch
from publisher.cluster.view import View, is_gated
from publisher.errors import DecisionError
from publisher.names import FINALIZER, MANAGED


class Assignment(Struct, frozen=True, kw_only=True):
    """What was decided for one place: pods that go to one node with their claims."""

    member: str
    index: int
    node: NodeName
    pods: tuple[PodRef, ...]
    claims: tuple[tuple[str, AllocationResult], ...]
    """By `namespace/name` of the ResourceClaim."""


class ClaimPlan(Struct, frozen=True, kw_only=True):
    """Writes to do next, or reasons why the decision cannot be written."""

    patches: tuple[Patch, ...] = ()
    refusals: tuple[str, ...] = ()


def assignments_of(
    decision: GangAllocated, submission: SubmitGang
) -> tuple[Assignment, ...]:
    """Say what was decided for the pods that were submitted.

    Raises:
        DecisionError: the decision names what was not submitted.
    """
    names = {
        member.name: [claim.name for claim in member.claims]
        for member in submission.gang.spec.members
    }
    found = []
    for member in decision.members:
        places = submission.places.get(member.member, ())
        if not 0 <= member.index < len(places):
            reason = f"there is no pod {member.member}/{member.index}"
            raise DecisionError(decision.uid, reason)
        place = places[member.index]
        claims = tuple(_claims(decision, member, names[member.member], place))
        found.append(
            Assignment(
                member=member.member,
                index=member.index,
                node=member.node,
                pods=place.pods,
                claims=claims,
            )
        )
    return tuple(found)


def plan_claims(assignments: Iterable[Assignment], view: View, now: str) -> ClaimPlan:
    """Plan the next write of every claim; nothing to write: all hold what they should.

    `now` is RFC 3339, whole seconds, UTC.
    """
    found: list[Patch] = []
    refusals: list[str] = []
    for assignment in assignments:
        for key, allocation in assignment.claims:
            step = _step(key, allocation, assignment.pods, view, now)
            if isinstance(step, str):
                refusals.append(step)
            elif step is not None:
                found.append(step)
    if refusals:
        return ClaimPlan(refusals=tuple(refusals))
    return ClaimPlan(patches=tuple(found))


def plan_prepare(keys: Iterable[str], view: View) -> Iterator[Patch]:
    """Plan finalizers ahead of decisions: one write less when it counts."""
    for key in sorted(set(keys)):
        claim = view.claim(key)
        if claim is None or claim.metadata.deletion_timestamp:
            continue
        if allocation_of(claim) is None and not _is_prepared(claim):
            yield patches.prepare(claim)


def plan_undo(keys: Iterable[str], view: View) -> Iterator[Patch]:
    """Plan to free the claims that nobody but gated pods of ours could have used.

    kube-scheduler allocates nothing for a gated pod: such an allocation is a write of
    ours that is not wanted any more.
    """
    for key in sorted(set(keys)):
        claim = view.claim(key)
        if claim is None or allocation_of(claim) is None:
            continue
        gated = {pod.metadata.uid for pod in view.users(key) if is_gated(pod)}
        if reserved_uids(claim) <= gated:
            yield patches.clear(claim)


def allocation_of(claim: ResourceClaim) -> AllocationResult | None:
    """Give a claim's allocation."""
    return None if claim.status is None else claim.status.allocation


def reserved_uids(claim: ResourceClaim) -> frozenset[str]:
    """Give the uids of those who may use a claim."""
    if claim.status is None:
        return frozenset()
    return frozenset(item.uid for item in claim.status.reserved_for)


def _claims(
    decision: GangAllocated, member: MemberAllocated, names: list[str], place: Place
) -> Iterator[tuple[str, AllocationResult]]:
    for item in member.claims:
        if item.claim not in names or len(names) != len(place.claims):
            reason = f"the gang has no claim {member.member}/{item.claim}"
            raise DecisionError(decision.uid, reason)
        name = place.claims[names.index(item.claim)]
        yield f"{decision.namespace}/{name}", item.allocation


def _step(
    key: str,
    wanted: AllocationResult,
    pods: Iterable[PodRef],
    view: View,
    now: str,
) -> Patch | str | None:
    claim = view.claim(key)
    if claim is None:
        return f"ResourceClaim {key} is gone"
    if claim.metadata.deletion_timestamp:
        return f"ResourceClaim {key} is being deleted"
    users = {user.metadata.uid for user in view.users(key)}
    users_placed = [pod for pod in pods if pod.uid in users]
    held = allocation_of(claim)
    if held is not None:
        if not is_same(held, wanted):
            return f"ResourceClaim {key} was allocated by somebody else"
        reserved = reserved_uids(claim)
        if all(pod.uid in reserved for pod in users_placed):
            return None
        return patches.reserve(claim, users_placed)
    taken = _taken(key, wanted, view)
    if taken:
        return taken
    if not _is_prepared(claim):
        return patches.prepare(claim)
    return patches.allocate(claim, wanted, users_placed, now)


def _taken(key: str, wanted: AllocationResult, view: View) -> str:
    for item in wanted.devices.results:
        if item.admin_access or item.share_id is not None:
            continue
        others = view.holders(item.device_id) - {key}
        if others:
            return f"device {item.device_id} is held by ResourceClaim {min(others)}"
    return ""


def is_same(one: AllocationResult, other: AllocationResult) -> bool:
    """Whether two allocations are of the same devices for the same requests.

    A server drops fields of features that are off and rewrites quantities, so nothing
    else is compared.
    """
    return _devices(one) == _devices(other)


def _devices(allocation: AllocationResult) -> list[tuple[str, str, str, str]]:
    return sorted(
        (item.request, item.driver, item.pool, item.device)
        for item in allocation.devices.results
    )


def _is_prepared(claim: ResourceClaim) -> bool:
    meta = claim.metadata
    return FINALIZER in meta.finalizers and MANAGED in meta.annotations
