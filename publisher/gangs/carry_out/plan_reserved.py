"""What comes next for a gang that was submitted before its pods.

A platform submits it over NATS, or a Gang object wants to hold its devices (`hold`). It
is decided without pods; once they are there it is like any other. The submission names
members and no pods. Pods whose gates were opened for it, or whose claims already hold
an allocation of the decision, keep their places; the others follow by name. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from msgspec.structs import replace

from contracts.allocation import AllocationResult
from contracts.counts import counted
from contracts.gang import Gang, GangPhase
from contracts.messages import (
    CancelGang,
    GangAllocated,
    GangRejected,
    MemberAllocated,
    Place,
)
from contracts.names import INDEX
from contracts.workload import Pod
from publisher.gangs.carry_out.plan_submitted import plan_giving_up, plan_submitted
from publisher.gangs.claims import devices_of, is_same_allocation
from publisher.gangs.context import NextSteps, PlanContext, StatusReport, SubmittedGang
from publisher.gangs.members import member_name_of, place_of_pod
from publisher.gangs.patches import Patch
from publisher.gangs.records import PodGangRecord
from publisher.gangs.reports import report_cancelled, report_undecided
from publisher.gangs.rollback import plan_undo
from publisher.gangs.running.plan_finished import plan_commanded, plan_finished
from publisher.gangs.running.plan_running import plan_running
from publisher.gangs.submit.compare import find_difference
from publisher.gangs.submit.readiness import (
    NotReady,
    find_missing,
    plan_fresh_start,
    plan_prepare,
)
from publisher.gangs.view import View, claim_keys, claims_of, is_gated, uids_of

Places = dict[str, tuple[Place, ...]]
_Held = tuple[str, tuple[tuple[str, str, str, str], ...]]
"""A claim of a pod by its name, and what it holds."""
_NOBODY = Place(pods=())


def plan_reserved(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Plan what comes next for a gang that was submitted before its pods.

    Its waiting pods are those of the group that nobody else has asked for.
    """
    record, waiting = submitted.record, submitted.waiting
    if record.is_open and not record.is_over:
        running = tuple(pod for pod in submitted.pods if not is_gated(pod))
        return plan_running(context, replace(submitted, pods=running))
    if record.is_ending:
        return _plan_ended(context, submitted)
    is_gang_gone = record.owner_uid and not _is_held(context, record)
    if is_gang_gone and not submitted.opened:
        steps = plan_giving_up(context, submitted, "the Gang object is gone")
        return steps + NextSteps(kept=uids_of(waiting))
    return _plan_bound(context, submitted)


def _plan_bound(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Find the pods of a decision, and carry it out once all are there."""
    record, waiting = submitted.record, submitted.waiting
    decision, message = record.in_force, record.submission
    if decision is None or message is None:
        return NextSteps(
            patches=tuple(plan_fresh_start(waiting, context)),
            reports=(report_undecided(record, waiting),),
            kept=uids_of(waiting),
        )
    places = bind_pods(
        decision,
        message.gang,
        opened=submitted.opened,
        waiting=submitted.entitled,
        context=context,
    )
    if isinstance(places, NotReady):
        stray = _plan_stray(decision, waiting, context.view)
        report = StatusReport(
            phase=GangPhase.DECIDED,
            reason=places.reason,
            message=f"its devices are held; {places.message}",
            pods=waiting,
            decision=decision,
        )
        return NextSteps(
            patches=tuple(stray or plan_prepare(claims_of(waiting), context)),
            reports=(report,),
            kept=uids_of(waiting),
        )
    # From here on it is as if it had been submitted with these pods.
    bound = replace(record, submission=replace(message, places=places))
    there = (*submitted.opened, *waiting)
    pods = tuple(pod for pod in there if pod.metadata.uid in bound.pods)
    submitted = replace(submitted, record=bound, pods=pods, requested=pods)
    return plan_submitted(context, submitted)


def _plan_ended(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Leave nothing behind; pods of a gang that was ended are told so."""
    record, waiting = submitted.record, submitted.waiting
    plan = plan_finished if record.is_over else plan_commanded
    steps = replace(plan(context, submitted), kept=uids_of(waiting))
    if steps.patches or steps.messages or not record.is_over:
        return steps
    # While its Gang object is there the gang is remembered, or it would come again.
    is_held = _is_held(context, record)
    is_rejected = isinstance(record.decision, GangRejected)
    if is_held or (waiting and is_rejected):
        steps = replace(steps, forget=())
    if is_rejected:
        return steps + NextSteps(reports=(report_undecided(record, waiting),))
    is_cancelled = isinstance(record.ended_by, CancelGang)
    if is_held and is_cancelled and not record.is_ended_by_publisher:
        return steps + NextSteps(reports=(report_cancelled(waiting),))
    return replace(steps, kept=frozenset())


def _plan_stray(
    decision: GangAllocated, pods: Sequence[Pod], view: View
) -> list[Patch]:
    """Plan to free what waiting pods hold beside the decision."""
    decided: dict[str, list[AllocationResult]] = {}
    for claim in (claim for member in decision.members for claim in member.claims):
        decided.setdefault(claim.claim, []).append(claim.allocation)
    kept = set()
    for name, key in (named for pod in pods for named in claim_keys(pod).items()):
        there = view.claim(key)
        held = None if there is None else there.allocation
        if held is not None and any(
            is_same_allocation(held, allocation) for allocation in decided.get(name, ())
        ):
            kept.add(key)
    return [patch for patch in plan_undo(pods, view) if patch.key not in kept]


def _is_held(context: PlanContext, record: PodGangRecord) -> bool:
    """True if the Gang object that a gang lives with is there."""
    gang = context.gang
    return gang is not None and gang.metadata.uid == record.owner_uid != ""


# --- which pod is which -----------------------------------------------------------


def bind_pods(
    decision: GangAllocated,
    gang: Gang,
    *,
    opened: Sequence[Pod],
    waiting: Sequence[Pod],
    context: PlanContext,
) -> Places | NotReady:
    """Return which pod has which decided place.

    `waiting` pods get places in their order. The place of an `opened` pod that is gone
    stays empty, as nobody waits for it.
    """
    # First whether the pods are as the gang says.
    missing = find_missing(waiting, context.view)
    if missing is not None:
        return missing
    text = find_difference(gang, waiting, context, whole=False)
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
        pods |= _match_pods(waiting_by_member.get(name, ()), free, context.view)
        for index, pod in pods.items():
            places[name, index] = place_of_pod(pod, member)
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


def _match_pods(
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
    """Find the first free index whose allocation a pod holds already."""
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
    """Describe a claim that several pods share though the Gang names none."""
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
