"""Which waiting pods a gang is that was submitted before them.

The submission names members, not pods; so its decision waits until all pods are there.
Pods whose gates were opened for it, or whose claims hold a decided allocation already,
are what they were; the others come in the order of their names. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from contracts.counts import counted
from contracts.gang import Gang, Member
from contracts.messages import GangAllocated, MemberAllocated, Place
from contracts.names import INDEX
from contracts.workload import Pod
from publisher.gangs.claims import devices_of
from publisher.gangs.compare import find_difference, member_name_of
from publisher.gangs.members import Owns
from publisher.gangs.plan_claims import ref_of
from publisher.gangs.readiness import NotReady, find_missing
from publisher.gangs.view import View, claim_keys, claims_of

Places = dict[str, tuple[Place, ...]]
_Held = tuple[str, tuple[tuple[str, str, str, str], ...]]
"""A claim of a pod by its name, and what it holds."""
_NOBODY = Place(pods=())


def bind_pods(
    decision: GangAllocated,
    gang: Gang,
    *,
    opened: Sequence[Pod],
    waiting: Sequence[Pod],
    view: View,
    owns: Owns,
) -> Places | NotReady:
    """Return which pod is which of the members that were decided.

    `waiting` pods are free to be taken, in their order; those of `opened` that are gone
    leave their place empty, as nobody waits for them any more.
    """
    # First whether the pods are as the gang says.
    missing = find_missing(waiting, view)
    if missing is not None:
        return missing
    text = find_difference(gang, waiting, view, owns, whole=False)
    text = text or _find_shared(gang, waiting)
    if text:
        return NotReady(reason="ClaimsDiffer", message=text)
    decided: dict[str, dict[int, MemberAllocated]] = {}
    for allocated in decision.members:
        decided.setdefault(allocated.member, {})[allocated.index] = allocated
    waiting_by_member: dict[str, list[Pod]] = {}
    for pod in waiting:
        name = member_name_of(pod, gang)
        waiting_by_member.setdefault(name, []).append(pod)
    opened_by_index = {pod.metadata.annotations.get(INDEX, ""): pod for pod in opened}
    # Then, member by member: who runs keeps its place, the waiting get the others.
    places: dict[tuple[str, int], Place] = {}
    for member in gang.spec.members:
        name, of_member = member.name, decided.get(member.name, {})
        pods = {
            index: opened_by_index[f"{name}/{index}"]
            for index in of_member
            if f"{name}/{index}" in opened_by_index
        }
        free = {index: of_member[index] for index in of_member if index not in pods}
        pods |= _match(waiting_by_member.get(name, ()), free, view)
        for index, pod in pods.items():
            places[name, index] = _place(pod, member)
    # Nothing begins before all are there; later the places of others stay empty.
    count = len(decision.members)
    if not opened and len(places) < count:
        message = f"{len(places)} of {counted(count, 'pod is', 'pods are')} there"
        return NotReady(reason="PodsMissing", message=message)
    return {
        member.name: tuple(
            places.get((member.name, index), _NOBODY) for index in range(member.count)
        )
        for member in gang.spec.members
    }


def _match(
    pods: Sequence[Pod], free: Mapping[int, MemberAllocated], view: View
) -> dict[int, Pod]:
    """Give pods a free index: first those that hold something, then the others."""
    indexes: dict[_Held, list[int]] = {}
    for index in sorted(free, reverse=True):
        for claim in free[index].claims:
            held = (claim.claim, devices_of(claim.allocation))
            indexes.setdefault(held, []).append(index)
    pods_by_index: dict[int, Pod] = {}
    without: list[Pod] = []
    for pod in pods:
        index_held = _find_held(pod, indexes, pods_by_index, view)
        if index_held is None:
            without.append(pod)
        else:
            pods_by_index[index_held] = pod
    rest = [index for index in sorted(free) if index not in pods_by_index]
    return pods_by_index | dict(zip(rest, without, strict=False))


def _find_held(
    pod: Pod, indexes: Mapping[_Held, list[int]], taken: Container[int], view: View
) -> int | None:
    """Find the first free index of which a pod holds something already."""
    for name, key in claim_keys(pod).items():
        claim = view.claim(key)
        allocation = None if claim is None else claim.allocation
        if allocation is None:
            continue
        free = indexes.get((name, devices_of(allocation)), [])
        while free and free[-1] in taken:
            free.pop()
        if free:
            return free[-1]
    return None


def _find_shared(gang: Gang, pods: Sequence[Pod]) -> str:
    """Name a claim of several pods that the Gang does not say is one."""
    namespace = gang.metadata.namespace
    named = {
        f"{namespace}/{claim.claim_name}"
        for member in gang.spec.members
        for claim in member.claims
        if claim.claim_name
    }
    for key, users in Counter(claims_of(pods)).items():
        if users > 1 and key not in named:
            pods_share = counted(users, "pod shares", "pods share")
            return f"{pods_share} ResourceClaim {key}, which the Gang does not mention"
    return ""


def _place(pod: Pod, member: Member) -> Place:
    keys = claim_keys(pod)
    names = (keys.get(claim.name, "") for claim in member.claims)
    return Place(
        pods=(ref_of(pod),), claims=tuple(name.partition("/")[2] for name in names)
    )
