"""What comes next for one group of pods: for each of its gangs, and new ones.

A pod belongs to the newest gang that asked for it, and to none once that one is given
up; pods that none takes care of are gathered until the gang is whole, then submitted.
Pods that replace others, and those whose devices somebody freed before they ran, are
submitted again by themselves. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from contracts.gang import GangPhase
from contracts.ids import GangUID
from contracts.messages import SubmitGang
from contracts.names import GANG_UID
from contracts.pods.members import group_connected
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.avoidance import find_avoidance, plan_avoidance
from publisher.gangs.completeness import list_run, split_by_run, split_replacements
from publisher.gangs.context import (
    GroupPlan,
    PlanContext,
    StatusReport,
    SubmittedGang,
)
from publisher.gangs.elastic import (
    keep_placed,
    report_unplaced,
    settles_in,
    tell_growing,
)
from publisher.gangs.gang_size import find_company
from publisher.gangs.gather import (
    ReadyGang,
    UnsubmittedPods,
    assemble,
    gang_uid,
    split_joining,
)
from publisher.gangs.plan_claims import plan_fresh_start
from publisher.gangs.plan_finished import plan_commanded, plan_finished
from publisher.gangs.plan_repairs import plan_repairs
from publisher.gangs.plan_reserved import plan_reservation, plan_reserved
from publisher.gangs.plan_running import (
    find_refused,
    is_displaced,
    plan_running,
    report_misplaced,
)
from publisher.gangs.plan_submitted import plan_submitted
from publisher.gangs.readiness import NotReady
from publisher.gangs.records import PodGangRecord
from publisher.gangs.recreation import plan_removal
from publisher.gangs.reports import report_cancelled
from publisher.gangs.view import claim_keys, is_gated, is_over, uids_of


def plan_gang(context: PlanContext) -> GroupPlan:
    """Say what may be done now for the pods of a group."""
    plan = GroupPlan()
    view, asking = context.view, context
    pods = view.pods(context.group)
    running = {p.metadata.annotations.get(GANG_UID) for p in pods if not is_gated(p)}
    records = (keep_placed(r, runs=r.uid in running) for r in context.records)
    context = replace(context, records=tuple(records))
    # First what needs no gang, then the gangs that were submitted.
    plan_repairs(pods, view, plan)
    plan_avoidance(context, pods, find_refused(context, pods, plan), plan)
    kept, asked, held = _plan_submitted_gangs(context, pods, plan)
    for whole, placed in zip(asking.records, context.records, strict=True):
        report = report_unplaced(whole, placed, pods)
        if report is not None:
            plan.reports.append(report)
            kept |= uids_of(report.pods)
            asked |= uids_of(report.pods)
            held |= uids_of(report.pods)
    gang = view.gang(context.group)
    if gang is not None and gang.spec.hold and plan_reservation(context, gang, plan):
        return plan
    # Then the pods that none of them answers for: they are asked for anew.
    free = [pod for pod in pods if pod.metadata.uid not in kept and not is_over(pod)]
    waiting = [pod for pod in free if is_gated(pod)]
    displaced = [pod for pod in free if is_displaced(pod, view, context.owns)]
    leave = uids_of(plan.removals) | plan.leaving
    stay = [pod for pod in pods if pod.metadata.uid not in leave]
    for run in split_by_run(waiting, view):
        same_run = list_run(stay, run, view)
        company = find_company(same_run, run, asked, context.records, held)
        before = [pod for pod in same_run if pod.metadata.uid in asked]
        for part in split_replacements(run, view, gang=gang, company=company):
            for some in split_joining(part, company, gang, view, before):
                _plan_new(asking, some, plan)
            before += part
    for group in group_connected(displaced, lambda pod: claim_keys(pod).values()):
        _plan_new(asking, UnsubmittedPods(pods=tuple(group), alone=True), plan)
    plan.reports += report_misplaced(context, free, plan)
    if gang is not None:
        plan.reports = list(tell_growing(gang, pods, plan.reports))
    if not pods and not context.records and gang is not None:
        message = "there are no pods yet"
        plan.reports.append(
            StatusReport(phase=WAITING, reason="PodsMissing", message=message)
        )
    return plan


# --- gangs that were submitted --------------------------------------------------------


def _plan_submitted_gangs(
    context: PlanContext, pods: Sequence[Pod], plan: GroupPlan
) -> tuple[set[str], set[str], set[str]]:
    """Plan for all gangs of a group; returns the uids of pods that they keep.

    The second set is of those that wait for devices: their gangs are not given up. The
    third is of those that wait and whose gangs may still hold something.
    """
    kept: set[str] = set()
    asked: set[str] = set()
    held: set[str] = set()
    gated = uids_of(pod for pod in pods if is_gated(pod) and not is_over(pod))
    newest = _newest_gang_by_pod(context.records)
    # First those that name their pods.
    for record in context.records:
        if record.pods:
            submitted = _gang_with_its_pods(record, pods, newest)
            stay = _plan_one(context, submitted, plan) & uids_of(submitted.pods)
            kept |= stay
            if not record.is_ending and record.uid not in plan.given_up:
                asked |= stay & gated
            if not record.is_finished:
                held |= stay & gated
    # Then those that were submitted before their pods, decided ones before others:
    # each may have the waiting pods that nobody has asked for before it.
    reserved = [record for record in context.records if not record.pods]
    finished = {record.uid for record in context.records if record.is_finished}
    named = {uid for uid, owner in newest.items() if owner not in finished} | kept
    for record in sorted(reserved, key=lambda r: (r.in_force is None, r.uid)):
        submitted = _gang_with_free_pods(record, pods, named, named | kept)
        if plan_removal(submitted, plan):
            stay = uids_of(submitted.pods)
        else:
            stay = plan_reserved(context, submitted, plan)
        kept |= stay
        if not record.is_ending and record.uid not in plan.given_up:
            asked |= stay & gated
        if not record.is_finished:
            held |= stay & gated
    return kept, asked, held


def _plan_one(
    context: PlanContext, submitted: SubmittedGang, plan: GroupPlan
) -> frozenset[str]:
    record = submitted.record
    if plan_removal(submitted, plan):
        return record.pods
    if record.is_over:
        return plan_finished(context, submitted, plan)
    if record.is_open:
        return plan_running(context, submitted, plan)
    if record.command is not None:
        return plan_commanded(context, submitted, plan)
    return plan_submitted(context, submitted, plan)


def _newest_gang_by_pod(records: Iterable[PodGangRecord]) -> dict[str, GangUID]:
    """Map the uid of each pod to the gang that it belongs to."""
    newest: dict[str, GangUID] = {}
    for record in sorted(records, key=lambda record: record.age):
        newest |= dict.fromkeys(record.pods, record.uid)
    return newest


def _gang_with_its_pods(
    record: PodGangRecord, pods: Sequence[Pod], newest: dict[str, GangUID]
) -> SubmittedGang:
    requested = tuple(pod for pod in pods if pod.metadata.uid in record.pods)
    return SubmittedGang(
        record=record,
        pods=tuple(p for p in requested if newest[p.metadata.uid] == record.uid),
        opened=tuple(pod for pod in pods if _runs_for(pod, record.uid)),
        requested=requested,
    )


def _gang_with_free_pods(
    record: PodGangRecord, pods: Sequence[Pod], named: set[str], taken: set[str]
) -> SubmittedGang:
    """Let a gang without pods of its own have those that nobody has taken.

    Its own are those that it opened, unless another has `named` them since.
    """
    opened = tuple(pod for pod in pods if _runs_for(pod, record.uid))
    own = (pod for pod in opened if pod.metadata.uid not in named)
    waiting = (
        pod
        for pod in pods
        if is_gated(pod) and not is_over(pod) and pod.metadata.uid not in taken
    )
    return SubmittedGang(
        record=record,
        pods=(*own, *waiting),
        opened=opened,
        requested=(),
        is_reserved=True,
    )


def _runs_for(pod: Pod, uid: GangUID) -> bool:
    return not is_gated(pod) and pod.metadata.annotations.get(GANG_UID) == uid


# --- new gangs ------------------------------------------------------------------------


def _plan_new(
    context: PlanContext, unsubmitted: UnsubmittedPods, plan: GroupPlan
) -> None:
    """Submit pods once they are a whole gang, or say why not yet."""
    view, pods = context.view, unsubmitted.pods
    plan.patches += plan_fresh_start(pods, view, context.owns)
    generation, uid = _name_next(context, pods)
    if context.forgotten(uid) is False:
        plan.reports.append(report_cancelled(pods))
        return
    # Whose gates are open keep the nodes that they are pinned to.
    avoided = () if unsubmitted.alone else find_avoidance(context, pods).nodes
    unsubmitted = replace(
        unsubmitted,
        gang=view.gang(context.group),
        generation=generation,
        avoided=avoided,
    )
    gang = assemble(unsubmitted, view, context.owns)
    settles_s = settles_in(context, unsubmitted.gang, pods)
    if settles_s and isinstance(gang, ReadyGang) and not unsubmitted.company.ran:
        plan.look_again_in(settles_s)
        gang = NotReady(reason="PodsMissing", message="waiting for more pods")
    report = StatusReport(phase=GangPhase.PENDING, pods=pods)
    match gang:
        case NotReady(reason=reason, message=message, cause=cause):
            report = replace(
                report, phase=WAITING, reason=reason, message=message, cause=cause
            )
        case ReadyGang():
            plan.messages.append(_submission(context, uid, gang))
    plan.reports.append(report)


def _name_next(context: PlanContext, pods: Sequence[Pod]) -> tuple[int, GangUID]:
    """Count how often these pods are asked for, and name the gang that they are then.

    It is named after its pods, so that two publishers submit the same.
    """
    name, uids = str(context.group), uids_of(pods)
    ages = (r.age[0] for r in context.records if not uids.isdisjoint(r.pods))
    generation = 1 + max(ages, default=0)
    while context.forgotten(uid := gang_uid(name, generation, uids)):
        generation += 1
    return generation, uid


def _submission(context: PlanContext, uid: GangUID, ready: ReadyGang) -> SubmitGang:
    return SubmitGang(
        cluster=context.cluster,
        uid=uid,
        gang=ready.gang,
        submitted_at=context.now,
        places=ready.places,
        avoided=ready.avoided,
        joins=ready.joins,
    )
