"""What comes next for one group of pods: for each of its gangs, and new ones.

A pod belongs to the newest gang that asked for it, and to none once that one is given
up; pods that none takes care of are gathered until the gang is whole, then submitted.
Pods that replace others, and those whose devices somebody freed before they ran, are
submitted again by themselves. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.ids import GangUID
from contracts.names import GANG_UID, OF_CLAIM
from contracts.pods.members import group_connected
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.carry_out.plan_reserved import plan_reserved
from publisher.gangs.carry_out.plan_submitted import plan_closed_again, plan_submitted
from publisher.gangs.context import (
    NextSteps,
    PlanContext,
    StatusReport,
    SubmittedGang,
    add_up,
)
from publisher.gangs.immediate import plan_immediate
from publisher.gangs.records import PodGangRecord
from publisher.gangs.running.avoidance import count_recreations, plan_avoidance
from publisher.gangs.running.growth import keep_placed, report_growth, report_unplaced
from publisher.gangs.running.plan_finished import plan_commanded, plan_finished
from publisher.gangs.running.plan_repairs import plan_repairs
from publisher.gangs.running.plan_running import (
    find_refused,
    is_displaced,
    plan_running,
    report_misplaced,
)
from publisher.gangs.running.preemption import plan_preemption
from publisher.gangs.running.recreation import plan_removal
from publisher.gangs.submit.bypassed import sort_bypassed
from publisher.gangs.submit.plan_submission import plan_reservation, plan_submission
from publisher.gangs.submit.split import UnsubmittedGang, split_waiting
from publisher.gangs.submit.strays import report_strays
from publisher.gangs.view import claim_keys, is_bypassed, is_gated, uids_of


def plan_gang(context: PlanContext) -> NextSteps:
    """Plan what may be done now for the pods of a group."""
    if context.group.api == OF_CLAIM:
        return plan_immediate(context)
    # First the gangs that were submitted, and what needs no gang.
    gangs = _plan_submitted_gangs(context)
    steps = add_up(gang.steps for gang in gangs)
    refused = find_refused(context, context.running)
    steps = (
        plan_repairs(context.pods, context.view)
        + plan_avoidance(context, refused.pods, steps.recreations)
        + NextSteps(
            reports=tuple(report_strays(context)), look_again_s=refused.look_again_s
        )
        + steps
    )
    gang = context.gang
    if gang is not None and gang.spec.hold:
        reservation = plan_reservation(context, gang)
        if reservation is not None:
            return steps + reservation
    # Then the pods that none of them answers for: they are asked for anew.
    steps += _plan_free_pods(context, gangs, steps)
    if not context.pods and not context.records and gang is not None:
        message = "there are no pods yet"
        report = StatusReport(phase=WAITING, reason="PodsMissing", message=message)
        steps += NextSteps(reports=(report,))
    reports = report_growth(context, steps.reports)
    made_anew = count_recreations(context, context.pods)
    if made_anew:
        reports = tuple(replace(each, recreations=made_anew) for each in reports)
    return replace(steps, reports=reports)


# --- gangs that were submitted --------------------------------------------------------


class _PlannedGang(Struct, frozen=True, kw_only=True):
    """A gang that was submitted, and what comes next for it."""

    record: PodGangRecord
    """As if it had been submitted with the pods alone that are placed."""
    steps: NextSteps

    @property
    def waits(self) -> bool:
        """True if its pods may still get devices by it."""
        uid = self.record.uid
        return not self.record.is_ending and uid not in self.steps.given_up


def _plan_submitted_gangs(context: PlanContext) -> list[_PlannedGang]:
    pods = context.pods
    running = {p.metadata.annotations.get(GANG_UID) for p in pods if not is_gated(p)}
    records = [keep_placed(r, runs=r.uid in running) for r in context.records]
    newest = _newest_gang_by_pod(records)
    # First those that name their pods.
    planned = []
    for record in records:
        if record.pods:
            steps = _plan_named(context, _gang_with_its_pods(record, pods, newest))
            planned.append(_PlannedGang(record=record, steps=steps))
    # Then those that were submitted before their pods, decided ones before others:
    # each may have the waiting pods that nobody has asked for before it.
    finished = {record.uid for record in records if record.is_finished}
    named = {uid for uid, owner in newest.items() if owner not in finished}
    named |= {uid for gang in planned for uid in gang.steps.kept}
    taken = set(named)
    reserved = (record for record in records if not record.pods)
    for record in sorted(reserved, key=lambda r: (r.in_force is None, r.uid)):
        submitted = _gang_with_free_pods(record, context, named, taken)
        steps = _plan_going(context, submitted) or plan_reserved(context, submitted)
        planned.append(_PlannedGang(record=record, steps=steps))
        taken |= steps.kept
    # Pods without a place wait with their gang until its gates are open.
    for whole, record in zip(context.records, records, strict=True):
        report = report_unplaced(whole, record, pods)
        if report is not None:
            steps = NextSteps(reports=(report,), kept=uids_of(report.pods))
            planned.append(_PlannedGang(record=record, steps=steps))
    return planned


def _plan_named(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Plan for a gang that names its pods."""
    record = submitted.record
    steps = _plan_going(context, submitted)
    if steps is None:
        if record.is_over:
            plan = plan_finished
        elif record.is_open and not submitted.entitled:
            plan = plan_running
        elif record.ended_by is not None:
            plan = plan_commanded
        elif record.is_open:
            plan = plan_closed_again
        else:
            plan = plan_submitted
        steps = plan(context, submitted)
    return replace(steps, kept=steps.kept & uids_of(submitted.pods))


def _plan_going(context: PlanContext, submitted: SubmittedGang) -> NextSteps | None:
    """Plan for a gang that goes, to be made anew or for another; None: it stays."""
    return plan_removal(submitted) or plan_preemption(context, submitted)


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
    record: PodGangRecord,
    context: PlanContext,
    named: Container[str],
    taken: Container[str],
) -> SubmittedGang:
    """Give a gang without named pods those that it opened and those that are free.

    It loses opened pods that another gang has `named` since.
    """
    opened = tuple(pod for pod in context.pods if _runs_for(pod, record.uid))
    own = (pod for pod in opened if pod.metadata.uid not in named)
    waiting = (pod for pod in context.waiting if pod.metadata.uid not in taken)
    return SubmittedGang(
        record=record,
        pods=(*own, *waiting),
        opened=opened,
        requested=(),
        is_reserved=True,
    )


def _runs_for(pod: Pod, uid: GangUID) -> bool:
    return not is_gated(pod) and pod.metadata.annotations.get(GANG_UID) == uid


# --- pods that are asked for anew -----------------------------------------------------


def _plan_free_pods(
    context: PlanContext, gangs: Sequence[_PlannedGang], steps: NextSteps
) -> NextSteps:
    """Plan for pods that no gang keeps; `steps` are what was planned for the others."""
    kept, gated = steps.kept, uids_of(context.waiting)
    running = [pod for pod in context.running if pod.metadata.uid not in kept]
    asked = {uid for gang in gangs if gang.waits for uid in gang.steps.kept & gated}
    held = {
        uid
        for gang in gangs
        if not gang.record.is_finished
        for uid in gang.steps.kept & gated
    }
    waiting = split_waiting(
        [pod for pod in context.waiting if pod.metadata.uid not in kept],
        context,
        leaving=uids_of((*steps.removals, *steps.evictions)) | steps.leaving,
        records=list({gang.record.uid: gang.record for gang in gangs}.values()),
        asked=asked,
        held=held,
    )
    bypassed = sort_bypassed(running, context)
    displaced = [pod for pod in running if is_displaced(pod, context)]
    planned = [
        plan_submission(context, gang)
        for gang in (*waiting, *_split_displaced([*displaced, *bypassed.asked]))
    ]
    passed = (pod for pod in running if not is_bypassed(pod))
    misplaced = report_misplaced(context, passed)
    return add_up((*planned, NextSteps(reports=(*bypassed.reports, *misplaced))))


def _split_displaced(pods: Sequence[Pod]) -> Iterator[UnsubmittedGang]:
    """Split pods beyond the gate that have no devices, by shared claims."""
    for tied in group_connected(pods, lambda pod: claim_keys(pod).values()):
        yield UnsubmittedGang(pods=tuple(tied), is_displaced=True)
