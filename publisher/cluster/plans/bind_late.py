"""Which waiting pods a gang is that was submitted before them.

The submission names members, not pods; so its decision waits until all pods are there.
Pods whose gates were opened for it, or whose claims hold a decided allocation already,
are what they were; the others come in the order of their names. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from contracts.gang import Gang, Member
from contracts.messages import GangAllocated, MemberAllocated, Place
from contracts.workload import Pod
from publisher.cluster.plans.agreement import difference, member_name
from publisher.cluster.plans.claims import allocation_of, is_same
from publisher.cluster.plans.members import Owns
from publisher.cluster.plans.plan_claims import ref_of
from publisher.cluster.plans.ready_claims import missing
from publisher.cluster.plans.waiting import Waiting
from publisher.cluster.view import View, claim_keys, claims_of
from publisher.names import INDEX

Places = dict[str, tuple[Place, ...]]
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
    found: dict[tuple[str, int], Place] = {}
    for member in gang.spec.members:
        slots = {m.index: m for m in decision.members if m.member == member.name}
        for pod in opened:
            index = _index_of(pod, member)
            if slots.pop(index, None) is not None:
                found[member.name, index] = _place(pod, member)
        pods = [pod for pod in waiting if member_name(pod, gang) == member.name]
        for index, pod in _matched(pods, slots, view).items():
            found[member.name, index] = _place(pod, member)
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
    pods: Sequence[Pod], slots: dict[int, MemberAllocated], view: View
) -> dict[int, Pod]:
    """Give pods their index: first those that hold something, then the others."""
    found: dict[int, Pod] = {}
    rest = []
    for pod in pods:
        held = (i for i, slot in slots.items() if _holds(pod, slot, view))
        index = next((i for i in held if i not in found), None)
        if index is None:
            rest.append(pod)
        else:
            found[index] = pod
    free = [index for index in sorted(slots) if index not in found]
    return found | dict(zip(free, rest, strict=False))


def _holds(pod: Pod, slot: MemberAllocated, view: View) -> bool:
    keys = claim_keys(pod)
    for item in slot.claims:
        claim = view.claim(keys.get(item.claim, ""))
        held = None if claim is None else allocation_of(claim)
        if held is not None and is_same(held, item.allocation):
            return True
    return False


def _shared(pods: Sequence[Pod]) -> str:
    """Name a claim of several pods: members say nothing of who shares one."""
    for key, users in Counter(claims_of(pods)).items():
        if users > 1:
            return f"{users} pods share ResourceClaim {key}, which the Gang cannot say"
    return ""


def _index_of(pod: Pod, member: Member) -> int:
    name, _, index = pod.metadata.annotations.get(INDEX, "").rpartition("/")
    return int(index) if name == member.name and index.isdecimal() else -1


def _place(pod: Pod, member: Member) -> Place:
    keys = claim_keys(pod)
    names = (keys.get(claim.name, "") for claim in member.claims)
    return Place(
        pods=(ref_of(pod),), claims=tuple(name.partition("/")[2] for name in names)
    )
