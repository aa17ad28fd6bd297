"""What comes next for a gang that was submitted before its pods.

By a platform over NATS, or for a Gang object that holds its devices (`hold`). It is
decided without pods; once they are there it is like any other. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from contracts.allocation import AllocationResult
from contracts.gang import GangPhase
from contracts.messages import CancelGang, GangAllocated, GangRejected
from contracts.workload import Pod
from publisher.gangs.carry_out.bind_pods import bind_pods
from publisher.gangs.carry_out.plan_submitted import plan_giving_up, plan_submitted
from publisher.gangs.claims import is_same_allocation
from publisher.gangs.context import NextSteps, PlanContext, StatusReport, SubmittedGang
from publisher.gangs.patches import Patch
from publisher.gangs.records import PodGangRecord
from publisher.gangs.reports import report_cancelled, report_undecided
from publisher.gangs.rollback import plan_undo
from publisher.gangs.running.plan_finished import plan_commanded, plan_finished
from publisher.gangs.running.plan_running import plan_running
from publisher.gangs.submit.readiness import NotReady, plan_fresh_start, plan_prepare
from publisher.gangs.view import View, claim_keys, claims_of, is_gated, uids_of


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
    is_gang_gone = _owner_uid(record) and not _is_held(context, record)
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
    if is_held and isinstance(record.command, CancelGang):
        return steps + NextSteps(reports=(report_cancelled(waiting),))
    return replace(steps, kept=frozenset())


def _plan_stray(
    decision: GangAllocated, pods: Sequence[Pod], view: View
) -> list[Patch]:
    """Plan to free what waiting pods hold and what was not decided."""
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


def _owner_uid(record: PodGangRecord) -> str:
    """Return the uid of the Gang object that a gang lives with; empty: none."""
    message = record.submission
    owners = () if message is None else message.gang.metadata.owner_references
    return next((owner.uid for owner in owners if owner.kind == "Gang"), "")


def _is_held(context: PlanContext, record: PodGangRecord) -> bool:
    """True if the Gang object that a gang lives with is there."""
    gang = context.gang
    return gang is not None and gang.metadata.uid == _owner_uid(record) != ""
