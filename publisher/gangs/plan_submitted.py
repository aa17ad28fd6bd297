"""What comes next for one submitted gang: claims, confirmation, gates, confirmation.

Plans only what may be done now: no gate before every claim is written and confirmed,
no refusal before what was written is taken back. Everything follows from what is
observed, so the publisher may end at any line and another go on. Once a gate is open
there is no way back: what cannot be had is then asked for anew by itself. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.gang import GangPhase
from contracts.lifecycle import PUBLISHER
from contracts.messages import (
    MAX_REASON,
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    GangAllocated,
    GatesOpened,
    PodWritten,
)
from contracts.names import ATTEMPT
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.errors import DecisionError
from publisher.gangs.avoidance import find_avoidance, find_end
from publisher.gangs.context import (
    GroupPlan,
    PlanContext,
    StatusReport,
    SubmittedGang,
)
from publisher.gangs.feasibility import find_fault, find_place_fault
from publisher.gangs.joined_pods import find_gone
from publisher.gangs.patches import Patch
from publisher.gangs.plan_claims import (
    Assignment,
    assignments_of,
    plan_claims,
    plan_gates,
    plan_prepare,
)
from publisher.gangs.records import PodGangRecord
from publisher.gangs.reports import report_undecided
from publisher.gangs.rollback import find_withdrawn, plan_withdrawal
from publisher.gangs.view import claim_keys, claims_of, is_gated
from publisher.gangs.void_marks import is_void


def plan_submitted(
    context: PlanContext, submitted: SubmittedGang, plan: GroupPlan
) -> frozenset[str]:
    """Add what comes next of a gang that is alive, and not open yet, to the plan.

    Returns the uids of the pods that stay with it; others may be asked for again.
    """
    decision = submitted.record.in_force
    refusal = ""
    assignments: tuple[Assignment, ...] = ()
    if decision is not None:
        # First what speaks against the decision, whatever the pods and claims are.
        try:
            assignments = _assignments(decision, submitted.record)
        except DecisionError as error:
            refusal = error.reason
        refusal = refusal or context.refused(decision.uid, decision.attempt)
        marked = (
            is_void(pod, decision.uid, decision.attempt) for pod in submitted.entitled
        )
        if any(marked):
            refusal = refusal or "its claims are being freed again"
    if submitted.opened:
        return _plan_partly_open(context, submitted, assignments, refusal, plan)
    # Then whether what was asked for can still be had: else nothing else matters.
    fault = find_fault(context, submitted, assignments)
    if fault and submitted.is_reserved:
        plan.reports.append(_report_taken(submitted, decision, fault))
    elif fault:
        _plan_given_up(context, submitted, fault, plan)
    elif decision is None:
        _plan_undecided(context, submitted, plan)
    elif refusal:
        _plan_refused(context, submitted, decision, refusal, plan)
    else:
        _plan_decided(context, submitted, decision, assignments, plan)
    return submitted.record.pods


def _report_taken(
    submitted: SubmittedGang, decision: GangAllocated | None, fault: str
) -> StatusReport:
    return StatusReport(
        phase=WAITING,
        reason="ClaimsTaken",
        message=fault[:MAX_REASON],
        pods=submitted.waiting,
        decision=decision,
    )


def _plan_given_up(
    context: PlanContext, submitted: SubmittedGang, fault: str, plan: GroupPlan
) -> None:
    """Take everything back, then give the gang up."""
    plan.given_up.append(submitted.record.uid)
    steps = plan_withdrawal(submitted, submitted.waiting, context.view)
    plan.patches += steps
    if not steps:
        reason = f"{PUBLISHER}{fault}"[:MAX_REASON]
        address = context.address(submitted.record)
        plan.messages.append(CancelGang(**address, reason=reason))


def _plan_undecided(
    context: PlanContext, submitted: SubmittedGang, plan: GroupPlan
) -> None:
    """Wait for a decision with nothing left of the one before."""
    waiting, view, record = submitted.waiting, context.view, submitted.record
    message = record.submission
    ended = ""
    if message is not None:
        ended = find_end(context, message, waiting)
        ended = ended or find_gone(message, view.pods(context.group))
    if ended:
        _plan_given_up(context, submitted, ended, plan)
        return
    steps = plan_withdrawal(submitted, waiting, view, record.attempt)
    plan.patches += steps or plan_prepare(claims_of(waiting), view, context.owns)
    note = find_avoidance(context, waiting).note
    plan.reports.append(report_undecided(record, submitted.pods, note))


def _plan_refused(
    context: PlanContext,
    submitted: SubmittedGang,
    decision: GangAllocated,
    refusal: str,
    plan: GroupPlan,
) -> None:
    """Take all of an attempt back, then have the gang decided again."""
    record, attempt = submitted.record, decision.attempt
    steps = plan_withdrawal(submitted, submitted.waiting, context.view, attempt)
    plan.patches += steps
    if not steps:
        kind = AllocationLost if record.is_written else AllocationRefused
        address, reason = context.address(record), refusal[:MAX_REASON]
        plan.messages.append(kind(**address, attempt=attempt, reason=reason))


def _plan_decided(
    context: PlanContext,
    submitted: SubmittedGang,
    decision: GangAllocated,
    assignments: Sequence[Assignment],
    plan: GroupPlan,
) -> None:
    """Write claims, say so, open gates, say so: one of these at a time."""
    record, view = submitted.record, context.view
    claims = plan_claims(assignments, view, context.owns, context.now)
    if claims.refusals:
        refusal = "; ".join(claims.refusals)
        _plan_refused(context, submitted, decision, refusal, plan)
        return
    plan.reports.append(
        StatusReport(phase=GangPhase.DECIDED, decision=decision, pods=submitted.waiting)
    )
    if claims.patches:
        plan.patches += _of_attempt(claims.patches, decision)
    elif not record.is_written:
        plan.messages.append(_confirm_written(context, record, decision, assignments))
    else:
        gates = _of_attempt(plan_gates(decision, assignments, view), decision)
        plan.patches += gates
        if not gates:
            plan.messages.append(_confirm_open(context, submitted, decision))


# --- once a gate is open --------------------------------------------------------------


class _Places(Struct):
    """The places of a gang some of whose gates are open, by what may become of them."""

    good: list[Assignment] = []
    """What was decided for them can be had."""
    stuck: list[Pod] = []
    """Pods at our gate that cannot get what was decided for them."""
    lost: list[Pod] = []
    """Pods beyond the gate that have lost it."""
    faults: list[str] = []
    """Why, of those that are lost."""


def _plan_partly_open(
    context: PlanContext,
    submitted: SubmittedGang,
    assignments: Sequence[Assignment],
    refusal: str,
    plan: GroupPlan,
) -> frozenset[str]:
    """Finish what was begun: each place by itself, now that some gates are open.

    `refusal` says why nothing of the decision may be written any more; empty: it may.
    """
    record, view = submitted.record, context.view
    decision = record.in_force
    if decision is None or not _run_by(decision, submitted.opened):
        # Its pods began to run by an attempt that does not count any more.
        fault = "its pods run by another attempt"
        _plan_given_up(context, submitted, fault, plan)
        return record.pods - find_withdrawn(submitted, view)
    places = _sort_places(context, submitted, assignments, refusal)
    # First take back what stuck pods hold, while the good ones get their claims.
    steps = plan_withdrawal(submitted, places.stuck, view)
    claims = plan_claims(places.good, view, context.owns, context.now)
    steps += _of_attempt(claims.patches, decision)
    # Then confirm the claims, open the gates that are left, and confirm that.
    if not steps and not record.is_written:
        plan.messages.append(_confirm_written(context, record, decision, places.good))
    elif not claims.patches:
        gates = _of_attempt(plan_gates(decision, places.good, view), decision)
        steps += gates
        if not steps:
            plan.messages.append(_confirm_open(context, submitted, decision))
    plan.patches += steps
    plan.reports.append(
        StatusReport(
            phase=GangPhase.ALLOCATED,
            reason="PlacementLost" if places.lost else "",
            message="; ".join(places.faults)[:MAX_REASON],
            pods=tuple(places.lost),
            decision=decision,
        )
    )
    return record.pods - find_withdrawn(submitted, view)


def _sort_places(
    context: PlanContext,
    submitted: SubmittedGang,
    assignments: Iterable[Assignment],
    refusal: str,
) -> _Places:
    """Sort places by whether they can have what was decided for them."""
    places = _Places()
    for assignment in assignments:
        alive = assignment.alive(context.view)
        waiting = [pod for pod in alive if is_gated(pod)]
        fault = refusal if waiting else ""
        fault = fault or _find_assignment_fault(context, submitted, assignment)
        if any(is_void(pod, submitted.record.uid) for pod in waiting):
            fault = fault or "withdrawn"
        if not fault:
            places.good.append(assignment)
        elif waiting:
            places.stuck += waiting
        else:
            places.lost += alive
            places.faults.append(fault)
    return places


def _run_by(decision: GangAllocated, pods: Iterable[Pod]) -> bool:
    attempt = str(decision.attempt)
    return all(pod.metadata.annotations.get(ATTEMPT) == attempt for pod in pods)


def _find_assignment_fault(
    context: PlanContext, submitted: SubmittedGang, assignment: Assignment
) -> str:
    """Say why one place cannot have what was decided for it; empty: it can."""
    message = submitted.record.submission
    if message is None:
        return ""
    place = message.places[assignment.member][assignment.index]
    member = next(m for m in message.gang.spec.members if m.name == assignment.member)
    fault = find_place_fault(context, submitted, member, place, assignment)
    claims = plan_claims((assignment,), context.view, context.owns, context.now)
    return fault or "; ".join(claims.refusals)


# --- what both need -------------------------------------------------------------------


def _assignments(
    decision: GangAllocated, record: PodGangRecord
) -> tuple[Assignment, ...]:
    if record.submission is None:
        raise DecisionError(decision.uid, "there is no submission")
    return assignments_of(decision, record.submission)


def _of_attempt(patches: Iterable[Patch], decision: GangAllocated) -> list[Patch]:
    """Note on writes whose decision they carry out."""
    uid, attempt = decision.uid, decision.attempt
    return [replace(patch, gang=uid, attempt=attempt) for patch in patches]


def _confirm_open(
    context: PlanContext, submitted: SubmittedGang, decision: GangAllocated
) -> GatesOpened:
    return GatesOpened(
        **context.address(submitted.record),
        attempt=decision.attempt,
        state=0,
        pods=len(submitted.opened),
    )


def _confirm_written(
    context: PlanContext,
    record: PodGangRecord,
    decision: GangAllocated,
    assignments: Iterable[Assignment],
) -> AllocationWritten:
    """Name the pods and claims that the decision became."""
    pods = tuple(
        PodWritten(
            member=assignment.member,
            index=assignment.index,
            pod=pod.metadata.name,
            claims={
                name: key.partition("/")[2] for name, key in claim_keys(pod).items()
            },
        )
        for assignment in assignments
        for pod in assignment.alive(context.view)
    )
    address = context.address(record)
    return AllocationWritten(**address, attempt=decision.attempt).naming(pods)
