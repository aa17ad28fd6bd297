"""What comes next for one submitted gang: claims, confirmation, gates, confirmation.

Gives only what may be done now: no gate before every claim is written and confirmed,
no refusal before what was written is taken back. Everything follows from what is
observed, so the publisher may end at any line and another go on. Once a gate is open
there is no way back: what cannot be had is then asked for anew by itself. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from contracts.allocation import Reason
from contracts.gang import GangPhase
from contracts.lifecycle import PUBLISHER
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    GangAllocated,
    GangPending,
    GangRejected,
    GatesOpened,
    PodWritten,
)
from contracts.names import ATTEMPT
from contracts.workload import Pod
from publisher.errors import DecisionError
from publisher.gangs.feasibility import fault_of, fault_of_place
from publisher.gangs.patches import Patch
from publisher.gangs.plan_claims import (
    Assignment,
    assignments_of,
    plan_claims,
    plan_prepare,
)
from publisher.gangs.plan_gates import plan_gates
from publisher.gangs.rollback import plan_undo, plan_withdrawal
from publisher.gangs.situation import (
    SHOWN,
    WAITING,
    GangPlan,
    Situation,
    Standing,
    StatusReport,
)
from publisher.gangs.submissions import Submission
from publisher.gangs.view import claim_keys, claims_of, is_gated, uids_of
from publisher.gangs.void_marks import is_void


def plan_submission(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """Add what comes next of a submission that is alive, and not open yet, to the plan.

    Gives the uids of the pods that stay with it; others may be asked for again.
    """
    decision = standing.submission.in_force
    refusal = ""
    assignments: tuple[Assignment, ...] = ()
    if decision is not None:
        try:
            assignments = _assignments(decision, standing.submission)
        except DecisionError as error:
            refusal = error.reason
        refusal = refusal or situation.refused(decision.uid, decision.attempt)
        if any(is_void(p, decision.uid, decision.attempt) for p in standing.left):
            refusal = refusal or "what was written of it is being taken back"
    if standing.runs:
        return _plan_rest(situation, standing, assignments, refusal, plan)
    fault = fault_of(situation, standing, assignments)
    if fault and standing.late:
        told = StatusReport(
            phase=WAITING,
            reason="ClaimsTaken",
            message=fault[:SHOWN],
            pods=standing.waiting,
            decision=decision,
        )
        plan.told.append(told)
    elif fault:
        _plan_given_up(situation, standing, fault, plan)
    elif decision is None:
        _plan_pending(situation, standing, plan)
    elif refusal:
        _plan_refused(situation, standing, decision, refusal, plan)
    else:
        _plan_decided(situation, standing, decision, assignments, plan)
    return standing.submission.pods


def withdrawn(standing: Standing, situation: Situation) -> frozenset[str]:
    """Name the waiting pods that are no part of it any more, and hold nothing."""
    uid = standing.submission.uid
    out = [pod for pod in standing.waiting if is_void(pod, uid)]
    held = {
        patch.key
        for patch in plan_undo(standing.waiting, situation.view, standing.gone)
    }
    return uids_of(pod for pod in out if held.isdisjoint(claim_keys(pod).values()))


def pending(submission: Submission, pods: Sequence[Pod]) -> StatusReport:
    """Say why a gang waits or was rejected."""
    decision = submission.decision
    phase = GangPhase.PENDING
    reasons: tuple[Reason, ...] = ()
    if isinstance(decision, GangRejected | GangPending):
        reasons = decision.reasons
    if isinstance(decision, GangRejected):
        phase = GangPhase.REJECTED
    said = submission.confirmation
    if isinstance(said, AllocationRefused | AllocationLost) and not reasons:
        reason, message = type(said).__name__, said.reason
    elif reasons:
        reason, message = str(reasons[0].rule), "; ".join(map(str, reasons))
    else:
        reason, message = "Undecided", "the solver has not decided yet"
    return StatusReport(
        phase=phase, reason=reason, message=message[:SHOWN], pods=tuple(pods)
    )


def _plan_given_up(
    situation: Situation, standing: Standing, fault: str, plan: GangPlan
) -> None:
    """Take everything back, then give the submission up."""
    submission = standing.submission
    steps = plan_withdrawal(standing, standing.waiting, situation.view)
    plan.patches += steps
    if not steps:
        reason = f"{PUBLISHER}{fault}"[:SHOWN]
        address = situation.address(submission)
        plan.messages.append(CancelGang(**address, reason=reason))


def _plan_pending(situation: Situation, standing: Standing, plan: GangPlan) -> None:
    """Wait for a decision with nothing left of the one before."""
    waiting, view = standing.waiting, situation.view
    steps = plan_withdrawal(standing, waiting, view, standing.submission.attempt)
    plan.patches += steps or plan_prepare(claims_of(waiting), view, situation.owns)
    plan.told.append(pending(standing.submission, standing.pods))


def _plan_refused(
    situation: Situation,
    standing: Standing,
    decision: GangAllocated,
    refusal: str,
    plan: GangPlan,
) -> None:
    """Take all of an attempt back, then have the gang decided again."""
    submission, attempt = standing.submission, decision.attempt
    steps = plan_withdrawal(standing, standing.waiting, situation.view, attempt)
    plan.patches += steps
    if not steps:
        kind = AllocationLost if submission.is_written else AllocationRefused
        address, reason = situation.address(submission), refusal[:SHOWN]
        plan.messages.append(kind(**address, attempt=attempt, reason=reason))


def _plan_decided(
    situation: Situation,
    standing: Standing,
    decision: GangAllocated,
    assignments: Sequence[Assignment],
    plan: GangPlan,
) -> None:
    """Write claims, say so, open gates: one of these at a time."""
    submission, view = standing.submission, situation.view
    claims = plan_claims(assignments, view, situation.owns, situation.now)
    if claims.refusals:
        refusal = "; ".join(claims.refusals)
        _plan_refused(situation, standing, decision, refusal, plan)
        return
    told = StatusReport(
        phase=GangPhase.DECIDED, decision=decision, pods=standing.waiting
    )
    plan.told.append(told)
    if claims.patches:
        plan.patches += _of_attempt(claims.patches, decision)
    elif not submission.is_written:
        plan.messages.append(_written(situation, standing, decision, assignments))
    else:
        gates = _of_attempt(plan_gates(decision, assignments, view), decision)
        plan.patches += gates
        if not gates:
            plan.messages.append(_opened(situation, submission, decision))


def _plan_rest(
    situation: Situation,
    standing: Standing,
    assignments: Sequence[Assignment],
    refusal: str,
    plan: GangPlan,
) -> frozenset[str]:
    """Finish what was begun: each place by itself, now that some gates are open."""
    submission, view = standing.submission, situation.view
    decision = submission.in_force
    if decision is None or not _runs_by(decision, standing.runs):
        return _plan_torn(situation, standing, plan)
    good: list[Assignment] = []
    stuck: list[Pod] = []
    lost: list[Pod] = []
    faults: list[str] = []
    for item in assignments:
        alive = item.alive(view)
        waiting = [pod for pod in alive if is_gated(pod)]
        fault = refusal if waiting else ""
        fault = fault or _fault(situation, standing, item)
        if any(is_void(pod, submission.uid) for pod in waiting):
            fault = fault or "withdrawn"
        if not fault:
            good.append(item)
        elif waiting:
            stuck += waiting
        else:
            lost += alive
            faults.append(fault)
    steps = plan_withdrawal(standing, stuck, view)
    claims = plan_claims(good, view, situation.owns, situation.now)
    steps += _of_attempt(claims.patches, decision)
    if not steps and not submission.is_written:
        plan.messages.append(_written(situation, standing, decision, good))
    elif not claims.patches:
        gates = _of_attempt(plan_gates(decision, good, view), decision)
        steps += gates
        if not steps:
            plan.messages.append(_opened(situation, submission, decision))
    plan.patches += steps
    plan.told.append(
        StatusReport(
            phase=GangPhase.WRITTEN,
            reason="PlacementLost" if lost else "",
            message="; ".join(faults)[:SHOWN],
            pods=tuple(lost),
            decision=decision,
        )
    )
    return submission.pods - withdrawn(standing, situation)


def _plan_torn(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """End a gang whose pods began to run by an attempt that does not count."""
    submission = standing.submission
    _plan_given_up(situation, standing, "its pods run by another attempt", plan)
    return submission.pods - withdrawn(standing, situation)


def _runs_by(decision: GangAllocated, pods: Iterable[Pod]) -> bool:
    attempt = str(decision.attempt)
    return all(pod.metadata.annotations.get(ATTEMPT) == attempt for pod in pods)


def _fault(situation: Situation, standing: Standing, item: Assignment) -> str:
    message = standing.submission.submission
    if message is None:
        return ""
    place = message.places[item.member][item.index]
    member = next(m for m in message.gang.spec.members if m.name == item.member)
    fault = fault_of_place(situation, standing, member, place, item)
    found = plan_claims((item,), situation.view, situation.owns, situation.now)
    return fault or "; ".join(found.refusals)


def _assignments(
    decision: GangAllocated, submission: Submission
) -> tuple[Assignment, ...]:
    if submission.submission is None:
        raise DecisionError(decision.uid, "there is no submission")
    return assignments_of(decision, submission.submission)


def _of_attempt(patches: Iterable[Patch], decision: GangAllocated) -> list[Patch]:
    """Say whose decision writes carry out."""
    uid, attempt = decision.uid, decision.attempt
    return [replace(patch, gang=uid, attempt=attempt) for patch in patches]


def _opened(
    situation: Situation, submission: Submission, decision: GangAllocated
) -> GatesOpened:
    address = situation.address(submission)
    return GatesOpened(**address, attempt=decision.attempt, state=0)


def _written(
    situation: Situation,
    standing: Standing,
    decision: GangAllocated,
    assignments: Iterable[Assignment],
) -> AllocationWritten:
    """Name the pods and claims that the decision became."""
    pods = tuple(
        PodWritten(
            member=item.member,
            index=item.index,
            pod=pod.metadata.name,
            claims={
                name: key.partition("/")[2] for name, key in claim_keys(pod).items()
            },
        )
        for item in assignments
        for pod in item.alive(situation.view)
    )
    address = situation.address(standing.submission)
    return AllocationWritten(**address, attempt=decision.attempt).naming(pods)
