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
    SubmitGang,
)
from contracts.names import ATTEMPT
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.errors import DecisionError
from publisher.gangs.carry_out.feasibility import find_fault, find_place_fault
from publisher.gangs.carry_out.plan_claims import (
    Assignment,
    ClaimWrites,
    assignments_of,
    plan_claims,
    plan_gates,
)
from publisher.gangs.context import (
    NextSteps,
    PlanContext,
    PublisherMessage,
    StatusReport,
    SubmittedGang,
)
from publisher.gangs.patches import Patch
from publisher.gangs.records import PodGangRecord
from publisher.gangs.reports import report_undecided
from publisher.gangs.rollback import find_withdrawn, plan_withdrawal
from publisher.gangs.running.attachment import (
    advise_deletion,
    find_unattached,
    report_unattached,
)
from publisher.gangs.running.avoidance import find_avoidance, find_end
from publisher.gangs.running.broken_gangs import describe_end
from publisher.gangs.running.growth_rules import find_gone_pod
from publisher.gangs.submit.readiness import plan_prepare
from publisher.gangs.view import claim_keys, claims_of, is_gated
from publisher.gangs.void_marks import is_void


def plan_submitted(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Plan what comes next for a gang that is alive, and not open yet."""
    decision = submitted.record.in_force
    refusal = ""
    assignments: tuple[Assignment, ...] = ()
    if decision is not None:
        # First what speaks against the decision, whatever the pods and claims are.
        try:
            assignments = _read_assignments(decision, submitted.record)
        except DecisionError as error:
            refusal = error.reason
        refusal = refusal or _find_refusal(context, submitted, decision)
    if submitted.opened:
        return _plan_partly_open(context, submitted, assignments, refusal)
    # Then whether what was asked for can still be had: else nothing else matters.
    fault = find_fault(context, submitted, assignments)
    if fault and submitted.is_reserved:
        report = _report_taken(submitted, decision, fault)
        steps = NextSteps(reports=(report,))
    elif fault:
        # Pods may run, and be ended, before all gates were said to be open.
        end = "" if submitted.alive else describe_end(context, submitted.record)
        steps = plan_giving_up(context, submitted, end or fault)
    elif decision is None:
        steps = _plan_undecided(context, submitted)
    elif refusal:
        steps = _plan_refused(context, submitted, decision, refusal)
    else:
        steps = _plan_decided(context, submitted, decision, assignments)
    return steps + NextSteps(kept=submitted.record.pods)


def plan_closed_again(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Plan for a gang of which a restored cluster has forgotten gates that were open.

    It goes on if its claims hold what was decided. Else it is given up: beyond claims,
    nothing kept the devices of a gang that ran from others.
    """
    if _has_devices(context, submitted):
        return plan_submitted(context, submitted)
    steps = plan_giving_up(context, submitted, "the cluster was restored from a backup")
    return steps + NextSteps(kept=submitted.record.pods)


def _has_devices(context: PlanContext, submitted: SubmittedGang) -> bool:
    """True if all claims of a gang hold what was decided for them."""
    decision = submitted.record.in_force
    try:
        if decision is not None:
            assignments = _read_assignments(decision, submitted.record)
            return plan_claims(assignments, context) == ClaimWrites()
    except DecisionError:
        pass
    return False


def _find_refusal(
    context: PlanContext, submitted: SubmittedGang, decision: GangAllocated
) -> str:
    """Return what speaks against writing an attempt; empty: nothing does."""
    uid, attempt = decision.uid, decision.attempt
    refusal = context.refused(uid, attempt)
    if not refusal and any(is_void(pod, uid, attempt) for pod in submitted.entitled):
        return "what was written of it is being taken back"
    return refusal


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


def plan_giving_up(
    context: PlanContext, submitted: SubmittedGang, fault: str
) -> NextSteps:
    """Take everything back, then give the gang up."""
    record = submitted.record
    given_up = frozenset({record.uid})
    patches = plan_withdrawal(submitted, submitted.waiting, context.view)
    if patches:
        return NextSteps(patches=tuple(patches), given_up=given_up)
    reason = f"{PUBLISHER}{fault}"[:MAX_REASON]
    message = CancelGang(**context.address(record), reason=reason)
    return NextSteps(messages=(message,), given_up=given_up)


def _plan_undecided(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Wait for a decision, and take back what is left of the last one."""
    waiting, view, record = submitted.waiting, context.view, submitted.record
    message = record.submission
    if message is not None:
        ended = (
            find_end(context, message, waiting)
            or find_gone_pod(message, context.pods)
            or _find_other_priority(context, submitted, message)
        )
        if ended:
            return plan_giving_up(context, submitted, ended)
    patches = plan_withdrawal(submitted, waiting, view, record.attempt)
    note = find_avoidance(context, waiting).note
    reports = [report_undecided(record, submitted.pods, note)]
    # It may be asked for anew because its device could not be attached to its node.
    unattached = find_unattached(context, submitted.pods)
    if unattached:
        reports.append(advise_deletion(report_unattached(context, unattached)))
    return NextSteps(
        patches=tuple(patches or plan_prepare(claims_of(waiting), context)),
        reports=tuple(reports),
    )


def _find_other_priority(
    context: PlanContext, submitted: SubmittedGang, message: SubmitGang
) -> str:
    """Say that a Gang object has another priority by now; empty: it has not.

    Pods that join others, or are beyond its size, have a priority of their own.
    """
    gang, asked = context.gang, message.gang.spec
    if gang is None or submitted.is_reserved or message.joins or message.restores:
        return ""
    pods = sum(member.count for member in asked.members)
    is_whole = pods == sum(member.count for member in gang.spec.members)
    if not is_whole or asked.priority == gang.spec.priority:
        return ""
    return f"its priority is {gang.spec.priority} now"


def _plan_refused(
    context: PlanContext,
    submitted: SubmittedGang,
    decision: GangAllocated,
    refusal: str,
) -> NextSteps:
    """Take all of an attempt back, then have the gang decided again."""
    record, attempt = submitted.record, decision.attempt
    patches = plan_withdrawal(submitted, submitted.waiting, context.view, attempt)
    if patches:
        return NextSteps(patches=tuple(patches))
    kind = AllocationLost if record.is_written else AllocationRefused
    address, reason = context.address(record), refusal[:MAX_REASON]
    return NextSteps(messages=(kind(**address, attempt=attempt, reason=reason),))


def _plan_decided(
    context: PlanContext,
    submitted: SubmittedGang,
    decision: GangAllocated,
    assignments: Sequence[Assignment],
) -> NextSteps:
    """Write claims, confirm, open gates, confirm: one of these at a time."""
    record = submitted.record
    claims = plan_claims(assignments, context)
    if claims.refusals:
        refusal = "; ".join(claims.refusals)
        return _plan_refused(context, submitted, decision, refusal)
    report = StatusReport(
        phase=GangPhase.DECIDED, decision=decision, pods=submitted.waiting
    )
    steps = NextSteps(reports=(report,))
    if claims.patches:
        return steps + NextSteps(patches=_note_attempt(claims.patches, decision))
    if not record.is_written:
        written = _confirm_written(context, record, decision, assignments)
        return steps + NextSteps(messages=(written,))
    gates = plan_gates(decision, assignments, context.view)
    patches = _note_attempt(gates, decision)
    opened = () if patches else (_confirm_open(context, submitted, decision),)
    return steps + NextSteps(patches=patches, messages=opened)


# --- once a gate is open --------------------------------------------------------------


class _SortedPlaces(Struct, frozen=True, kw_only=True):
    """The places of a gang some of whose gates are open, by what may become of them."""

    good: tuple[Assignment, ...]
    """What was decided for them can be had."""
    stuck: tuple[Pod, ...]
    """Pods at our gate that cannot get what was decided for them."""
    lost: tuple[Pod, ...]
    """Pods beyond the gate that have lost it."""
    faults: tuple[str, ...]
    """Why they have lost it."""


def _plan_partly_open(
    context: PlanContext,
    submitted: SubmittedGang,
    assignments: Sequence[Assignment],
    refusal: str,
) -> NextSteps:
    """Finish what was begun: each place by itself, now that some gates are open.

    `refusal` says why nothing of the decision may be written any more; empty: it may.
    """
    record, view = submitted.record, context.view
    decision = record.in_force
    kept = NextSteps(kept=record.pods - find_withdrawn(submitted, view))
    if decision is None or not _run_by(decision, submitted.opened):
        # Its pods began to run by an attempt that does not count any more.
        return kept + plan_giving_up(
            context, submitted, "its pods run by another attempt"
        )
    places = _sort_places(context, submitted, assignments, refusal)
    report = StatusReport(
        phase=GangPhase.ALLOCATED,
        reason="PlacementLost" if places.lost else "",
        message="; ".join(places.faults)[:MAX_REASON],
        pods=places.lost,
        decision=decision,
    )
    # First take back what stuck pods hold, while the good ones get their claims.
    claims = _note_attempt(plan_claims(places.good, context).patches, decision)
    patches = (*plan_withdrawal(submitted, places.stuck, view), *claims)
    messages: tuple[PublisherMessage, ...] = ()
    # Then confirm the claims, open the gates that are left, and confirm that.
    if not patches and not record.is_written:
        messages = (_confirm_written(context, record, decision, places.good),)
    elif not claims:
        patches += _note_attempt(plan_gates(decision, places.good, view), decision)
        if not patches:
            messages = (_confirm_open(context, submitted, decision),)
    return kept + NextSteps(patches=patches, messages=messages, reports=(report,))


def _sort_places(
    context: PlanContext,
    submitted: SubmittedGang,
    assignments: Iterable[Assignment],
    refusal: str,
) -> _SortedPlaces:
    """Sort places by whether they can have what was decided for them."""
    good: list[Assignment] = []
    stuck: list[Pod] = []
    lost: list[Pod] = []
    faults: list[str] = []
    for assignment in assignments:
        alive = assignment.alive(context.view)
        waiting = [pod for pod in alive if is_gated(pod)]
        fault = refusal if waiting else ""
        fault = fault or _find_assignment_fault(context, submitted, assignment)
        if any(is_void(pod, submitted.record.uid) for pod in waiting):
            fault = fault or "withdrawn"
        if not fault:
            good.append(assignment)
        elif waiting:
            stuck += waiting
        else:
            lost += alive
            faults.append(fault)
    return _SortedPlaces(
        good=tuple(good), stuck=tuple(stuck), lost=tuple(lost), faults=tuple(faults)
    )


def _run_by(decision: GangAllocated, pods: Iterable[Pod]) -> bool:
    attempt = str(decision.attempt)
    return all(pod.metadata.annotations.get(ATTEMPT) == attempt for pod in pods)


def _find_assignment_fault(
    context: PlanContext, submitted: SubmittedGang, assignment: Assignment
) -> str:
    """Return why one place cannot have what was decided for it; empty: it can."""
    message = submitted.record.submission
    if message is None:
        return ""
    place = message.places[assignment.member][assignment.index]
    member = next(m for m in message.gang.spec.members if m.name == assignment.member)
    fault = find_place_fault(context, submitted, member, place, assignment)
    claims = plan_claims((assignment,), context)
    return fault or "; ".join(claims.refusals)


# --- what both need -------------------------------------------------------------------


def _read_assignments(
    decision: GangAllocated, record: PodGangRecord
) -> tuple[Assignment, ...]:
    if record.submission is None:
        raise DecisionError(decision.uid, "there is no submission")
    return assignments_of(decision, record.submission)


def _note_attempt(
    patches: Iterable[Patch], decision: GangAllocated
) -> tuple[Patch, ...]:
    """Note on patches which decision and attempt they carry out."""
    uid, attempt = decision.uid, decision.attempt
    return tuple(replace(patch, gang=uid, attempt=attempt) for patch in patches)


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
    """Confirm which pods and claims the decision became."""
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
