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
from contracts.workload import Pod
from publisher.gangs.bind_pods import bind_late
from publisher.gangs.claims import is_same
from publisher.gangs.patches import Patch
from publisher.gangs.plan_claims import plan_afresh, plan_prepare
from publisher.gangs.plan_ended import (
    cancelled,
    plan_commanded,
    plan_over,
    plan_running,
)
from publisher.gangs.plan_submitted import pending, plan_submission
from publisher.gangs.rollback import plan_undo, plan_withdrawal
from publisher.gangs.situation import (
    WAITING,
    GangPlan,
    Situation,
    Standing,
    StatusReport,
)
from publisher.gangs.submissions import Submission
from publisher.gangs.view import View, claim_keys, claims_of, is_gated, uids_of
from publisher.gangs.waiting import Waiting


def plan_hold(situation: Situation, gang: Gang, plan: GangPlan) -> bool:
    """Submit a Gang object that takes its devices before its pods; False: it was."""
    meta = gang.metadata
    uid = GangUID(meta.uid)
    known = any(item.uid == uid for item in situation.submissions)
    if known or situation.forgotten(uid) is not None:
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
            cluster=situation.cluster,
            uid=uid,
            gang=Gang(metadata=named, spec=gang.spec),
            submitted_at=situation.now,
        )
    except ValueError as error:
        plan.told.append(
            StatusReport(phase=WAITING, reason="Invalid", message=f"the Gang: {error}")
        )
        return True
    plan.messages.append(message)
    return True


def plan_late(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """Add what comes next to the plan; gives the uids of pods that stay with it.

    Its waiting pods are those of the group that nobody else has asked for.
    """
    submission, opened = standing.submission, standing.runs
    waiting = standing.waiting
    if submission.is_open and not submission.is_over:
        running = tuple(pod for pod in standing.pods if not is_gated(pod))
        return plan_running(situation, replace(standing, pods=running), plan)
    if submission.is_ending:
        return _plan_ended(situation, standing, plan)
    held = _is_held(situation, submission)
    if _owner(submission) and not held and not opened:
        steps = plan_withdrawal(standing, waiting, situation.view)
        plan.patches += steps
        if not steps:
            reason = f"{PUBLISHER}the Gang object is gone"
            address = situation.address(submission)
            plan.messages.append(CancelGang(**address, reason=reason))
        return uids_of(waiting)
    return _plan_bound(situation, standing, plan)


def _plan_bound(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """Find the pods of a decision, and carry it out once all are there."""
    submission, view, owns = standing.submission, situation.view, situation.owns
    decision, message = submission.in_force, submission.submission
    waiting = standing.waiting
    if decision is None or message is None:
        plan.patches += plan_afresh(waiting, view, owns)
        plan.told.append(pending(submission, waiting))
        return uids_of(waiting)
    found = bind_late(
        decision,
        message.gang,
        opened=standing.runs,
        waiting=standing.left,
        view=view,
        owns=owns,
    )
    if isinstance(found, Waiting):
        stray = _stray(decision, waiting, view)
        plan.patches += stray or plan_prepare(claims_of(waiting), view, owns)
        plan.told.append(
            StatusReport(
                phase=GangPhase.DECIDED,
                reason=found.reason,
                message=f"its devices are held; {found.message}",
                pods=waiting,
                decision=decision,
            )
        )
        return uids_of(waiting)
    bound = replace(submission, submission=replace(message, places=found))
    here = (*standing.runs, *waiting)
    pods = tuple(pod for pod in here if pod.metadata.uid in bound.pods)
    return plan_submission(
        situation, replace(standing, submission=bound, pods=pods, named=pods), plan
    )


def _plan_ended(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """Leave nothing behind; pods of a gang that was ended are told so."""
    submission, waiting = standing.submission, standing.waiting
    before = len(plan.patches), len(plan.messages)
    if submission.is_over:
        plan_over(situation, standing, plan)
    else:
        plan_commanded(situation, standing, plan)
    if (len(plan.patches), len(plan.messages)) != before or not submission.is_over:
        return uids_of(waiting)
    held = _is_held(situation, submission)
    rejected = isinstance(submission.decision, GangRejected)
    if held or (waiting and rejected):
        plan.forget = [uid for uid in plan.forget if uid != submission.uid]
    if rejected:
        plan.told.append(pending(submission, waiting))
        return uids_of(waiting)
    if held and isinstance(submission.command, CancelGang):
        plan.told.append(cancelled(waiting))
        return uids_of(waiting)
    return frozenset()


def _stray(decision: GangAllocated, pods: Sequence[Pod], view: View) -> list[Patch]:
    """Plan to free what waiting pods hold and what was not decided."""
    decided: dict[str, list[AllocationResult]] = {}
    for item in (claim for member in decision.members for claim in member.claims):
        decided.setdefault(item.claim, []).append(item.allocation)
    kept = set()
    for name, key in (item for pod in pods for item in claim_keys(pod).items()):
        claim = view.claim(key)
        held = None if claim is None else claim.allocation
        if held is not None and any(is_same(held, a) for a in decided.get(name, ())):
            kept.add(key)
    return [patch for patch in plan_undo(pods, view) if patch.key not in kept]


def _owner(submission: Submission) -> str:
    """Give the uid of the Gang object that a submission lives with; empty: none."""
    message = submission.submission
    owners = () if message is None else message.gang.metadata.owner_references
    return next((item.uid for item in owners if item.kind == "Gang"), "")


def _is_held(situation: Situation, submission: Submission) -> bool:
    gang = situation.view.gang(situation.group)
    return gang is not None and gang.metadata.uid == _owner(submission) != ""
