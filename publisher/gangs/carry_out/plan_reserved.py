"""What comes next for a gang that was submitted before its pods.

By a platform over NATS, or for a Gang object that holds its devices (`hold`). It is
decided without pods; once they are there it is like any other. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from contracts.allocation import AllocationResult
from contracts.gang import Gang, GangPhase
from contracts.ids import GangUID
from contracts.lifecycle import PUBLISHER
from contracts.messages import CancelGang, GangAllocated, GangRejected, SubmitGang
from contracts.meta import ObjectMeta, OwnerReference
from contracts.names import GANG
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.carry_out.bind_pods import bind_pods
from publisher.gangs.carry_out.plan_submitted import plan_submitted
from publisher.gangs.claims import is_same_allocation
from publisher.gangs.context import GroupPlan, PlanContext, StatusReport, SubmittedGang
from publisher.gangs.patches import Patch
from publisher.gangs.records import PodGangRecord
from publisher.gangs.reports import report_cancelled, report_undecided
from publisher.gangs.rollback import plan_undo, plan_withdrawal
from publisher.gangs.running.plan_finished import plan_commanded, plan_finished
from publisher.gangs.running.plan_running import plan_running
from publisher.gangs.submit.readiness import NotReady, plan_fresh_start, plan_prepare
from publisher.gangs.view import View, claim_keys, claims_of, is_gated, uids_of


def plan_reservation(context: PlanContext, gang: Gang, plan: GroupPlan) -> bool:
    """Submit a Gang object that takes its devices before its pods; False: it was."""
    meta = gang.metadata
    uid = GangUID(meta.uid)
    is_submitted = any(record.uid == uid for record in context.records)
    if is_submitted or context.forgotten(uid) is not None:
        return False
    owner = OwnerReference(
        api_version=gang.api_version, kind=gang.kind, name=meta.name, uid=meta.uid
    )
    named = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        labels={GANG: meta.name},
        owner_references=(owner,),
        generation=1,
    )
    try:
        message = SubmitGang(
            cluster=context.cluster,
            uid=uid,
            gang=Gang(metadata=named, spec=gang.spec),
            submitted_at=context.now,
        )
    except ValueError as error:
        plan.reports.append(
            StatusReport(phase=WAITING, reason="Invalid", message=f"the Gang: {error}")
        )
        return True
    plan.messages.append(message)
    return True


def plan_reserved(
    context: PlanContext, submitted: SubmittedGang, plan: GroupPlan
) -> frozenset[str]:
    """Add what comes next to the plan; returns the uids of pods that stay with it.

    Its waiting pods are those of the group that nobody else has asked for.
    """
    record, waiting = submitted.record, submitted.waiting
    if record.is_open and not record.is_over:
        running = tuple(pod for pod in submitted.pods if not is_gated(pod))
        return plan_running(context, replace(submitted, pods=running), plan)
    if record.is_ending:
        return _plan_ended(context, submitted, plan)
    is_gang_gone = _owner_uid(record) and not _is_held(context, record)
    if is_gang_gone and not submitted.opened:
        plan.given_up.append(record.uid)
        steps = plan_withdrawal(submitted, waiting, context.view)
        plan.patches += steps
        if not steps:
            reason = f"{PUBLISHER}the Gang object is gone"
            address = context.address(record)
            plan.messages.append(CancelGang(**address, reason=reason))
        return uids_of(waiting)
    return _plan_bound(context, submitted, plan)


def _plan_bound(
    context: PlanContext, submitted: SubmittedGang, plan: GroupPlan
) -> frozenset[str]:
    """Find the pods of a decision, and carry it out once all are there."""
    record, view, owns = submitted.record, context.view, context.owns
    decision, message = record.in_force, record.submission
    waiting = submitted.waiting
    if decision is None or message is None:
        plan.patches += plan_fresh_start(waiting, view, owns)
        plan.reports.append(report_undecided(record, waiting))
        return uids_of(waiting)
    places = bind_pods(
        decision,
        message.gang,
        opened=submitted.opened,
        waiting=submitted.entitled,
        view=view,
        owns=owns,
    )
    if isinstance(places, NotReady):
        stray = _plan_stray(decision, waiting, view)
        plan.patches += stray or plan_prepare(claims_of(waiting), view, owns)
        plan.reports.append(
            StatusReport(
                phase=GangPhase.DECIDED,
                reason=places.reason,
                message=f"its devices are held; {places.message}",
                pods=waiting,
                decision=decision,
            )
        )
        return uids_of(waiting)
    # From here on it is as if it had been submitted with these pods.
    bound = replace(record, submission=replace(message, places=places))
    there = (*submitted.opened, *waiting)
    pods = tuple(pod for pod in there if pod.metadata.uid in bound.pods)
    submitted = replace(submitted, record=bound, pods=pods, requested=pods)
    return plan_submitted(context, submitted, plan)


def _plan_ended(
    context: PlanContext, submitted: SubmittedGang, plan: GroupPlan
) -> frozenset[str]:
    """Leave nothing behind; pods of a gang that was ended are told so."""
    record, waiting = submitted.record, submitted.waiting
    steps = len(plan.patches) + len(plan.messages)
    if record.is_over:
        plan_finished(context, submitted, plan)
    else:
        plan_commanded(context, submitted, plan)
    if len(plan.patches) + len(plan.messages) > steps or not record.is_over:
        return uids_of(waiting)
    # While its Gang object is there the gang is remembered, or it would come again.
    is_held = _is_held(context, record)
    is_rejected = isinstance(record.decision, GangRejected)
    if is_held or (waiting and is_rejected):
        plan.forget = [uid for uid in plan.forget if uid != record.uid]
    if is_rejected:
        plan.reports.append(report_undecided(record, waiting))
        return uids_of(waiting)
    if is_held and isinstance(record.command, CancelGang):
        plan.reports.append(report_cancelled(waiting))
        return uids_of(waiting)
    return frozenset()


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
    """Whether the Gang object that a gang lives with is there."""
    gang = context.view.gang(context.group)
    return gang is not None and gang.metadata.uid == _owner_uid(record) != ""
