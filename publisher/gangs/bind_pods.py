"""Which waiting pods a gang is that was submitted before them.

The submission names members, not pods; so its decision waits until all pods are there.
Pods whose gates were opened for it, or whose claims hold a decided allocation already,
are what they were; the others come in the order of their names. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from contracts.gang import Gang, Member
from contracts.messages import GangAllocated, MemberAllocated, Place
from contracts.names import INDEX
from contracts.workload import Pod
from publisher.gangs.claims import given
from publisher.gangs.compare import difference, member_name
from publisher.gangs.members import Owns
from publisher.gangs.plan_claims import ref_of
from publisher.gangs.readiness import missing
from publisher.gangs.view import View, claim_keys, claims_of
from publisher.gangs.waiting import Waiting

Places = dict[str, tuple[Place, ...]]
_Held = tuple[str, tuple[tuple[str, str, str, str], ...]]
"""A claim of a pod by its name, and what it holds."""
_NOBODY = Place(pods=())


def bind_late(
    decision: GangAllocated,
    gang: Gang,
    *,
    opened: Sequence[Pod],
    waiting: Sequence[Pod],
    view: View,
    owns: Owns,
) -> Places | Waiting:
    """Say which pod is which of the members that were decided.

    `waiting` pods are free to be taken, in their order; those of `opened` that are gone
    leave their place empty, as nobody waits for them any more.
    """
    lacking = missing(waiting, view)
    if lacking is not None:
        return lacking
    text = difference(gang, waiting, view, owns, whole=False) or _shared(waiting)
    if text:
        return Waiting(reason="ClaimsDiffer", message=text)
    slots: dict[str, dict[int, MemberAllocated]] = {}
    for slot in decision.members:
        slots.setdefault(slot.member, {})[slot.index] = slot
    here: dict[str, list[Pod]] = {}
    for pod in waiting:
        here.setdefault(member_name(pod, gang), []).append(pod)
    ran = {pod.metadata.annotations.get(INDEX, ""): pod for pod in opened}
    found: dict[tuple[str, int], Place] = {}
    for member in gang.spec.members:
        name, free = member.name, slots.get(member.name, {})
        pods = {i: ran[f"{name}/{i}"] for i in free if f"{name}/{i}" in ran}
        free = {index: slot for index, slot in free.items() if index not in pods}
        pods |= _matched(here.get(name, ()), free, view)
        found |= {(name, index): _place(pod, member) for index, pod in pods.items()}
    wanted = sum(member.count for member in gang.spec.members)
    if not opened and len(found) < wanted:
        message = f"{len(found)} of {wanted} pods are there"
        return Waiting(reason="PodsMissing", message=message)
    return {
        member.name: tuple(
            found.get((member.name, index), _NOBODY) for index in range(member.count)
        )
        for member in gang.spec.members
    }


def _matched(
    pods: Sequence[Pod], slots: Mapping[int, MemberAllocated], view: View
) -> dict[int, Pod]:
    """Give pods their index: first those that hold something, then the others."""
    places: dict[_Held, list[int]] = {}
    for index in sorted(slots, reverse=True):
        for item in slots[index].claims:
            places.setdefault((item.claim, given(item.allocation)), []).append(index)
    found: dict[int, Pod] = {}
    rest: list[Pod] = []
    for pod in pods:
        held = _held_by(pod, places, found, view)
        if held is None:
            rest.append(pod)
        else:
            found[held] = pod
    free = [index for index in sorted(slots) if index not in found]
    return found | dict(zip(free, rest, strict=False))


def _held_by(
    pod: Pod, places: Mapping[_Held, list[int]], taken: Container[int], view: View
) -> int | None:
    """Give the first free index of which a pod holds something already."""
    for name, key in claim_keys(pod).items():
        claim = view.claim(key)
        held = None if claim is None else claim.allocation
        if held is None:
            continue
        indexes = places.get((name, given(held)), [])
        while indexes and indexes[-1] in taken:
            indexes.pop()
        if indexes:
            return indexes[-1]
    return None


def _shared(pods: Sequence[Pod]) -> str:
    """Name a claim of several pods: members say nothing of who shares one."""
    for key, users in Counter(claims_of(pods)).items():
        if users > 1:
            return f"{users} pods share ResourceClaim {key}, which the Gang cannot say"
    return ""


def _place(pod: Pod, member: Member) -> Place:
    keys = claim_keys(pod)
    names = (keys.get(claim.name, "") for claim in member.claims)
    return Place(
        pods=(ref_of(pod),), claims=tuple(name.partition("/")[2] for name in names)
    )
