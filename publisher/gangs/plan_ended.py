"""What is left to do for gangs that run, were given up, or are over.

Watches over pods whose gates are open, takes back what waiting pods hold of a gang
that nobody wants any more, and forgets it once none of its pods needs anything. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from contracts.gang import GangPhase
from contracts.messages import ClaimsReleased, GangRejected, ReleaseGang
from contracts.workload import Pod
from publisher.gangs.claims import only_node
from publisher.gangs.feasibility import pinned_to
from publisher.gangs.members import Owns
from publisher.gangs.plan_submitted import pending, withdrawn
from publisher.gangs.rollback import plan_withdrawal
from publisher.gangs.situation import GangPlan, Situation, Standing, StatusReport
from publisher.gangs.submissions import Submission
from publisher.gangs.view import View, claim_keys, is_gated, is_over, uids_of
from publisher.gangs.void_marks import is_void

NAMED = 5
"""So many pods are named in a text."""


def lacks_claims(pod: Pod, view: View, owns: Owns) -> bool:
    """Whether a pod has a claim that is gone, or one of ours that holds nothing."""
    for key in claim_keys(pod).values():
        claim = view.claim(key)
        if claim is None or (claim.allocation is None and owns(claim)):
            return True
    return False


def is_lost(pod: Pod, view: View, owns: Owns) -> bool:
    """Whether a pod whose gate is open cannot run as it was placed."""
    if lacks_claims(pod, view, owns):
        return True
    if pod.spec.node_name:
        return False
    node = pinned_to(pod)
    if not view.is_node(node):
        return True
    claims = (view.claim(key) for key in claim_keys(pod).values())
    held = (None if claim is None else claim.allocation for claim in claims)
    nodes = {only_node(item.node_selector) for item in held if item is not None}
    return not nodes <= {"", node}


def is_displaced(pod: Pod, view: View, owns: Owns) -> bool:
    """Whether somebody freed the devices of a pod before it was bound."""
    if is_gated(pod) or is_over(pod) or pod.spec.node_name:
        return False
    return lacks_claims(pod, view, owns)


def plan_running(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """Watch over pods whose gates are open; give up those whose devices were lost."""
    submission, view, owns = standing.submission, situation.view, situation.owns
    alive = standing.alive
    decision = submission.in_force
    stray = [p for p in standing.waiting if is_void(p, submission.uid)]
    plan.patches += plan_withdrawal(standing, stray, view)
    if not alive:
        if submission.command is None:
            address = situation.address(submission)
            plan.messages.append(ReleaseGang(**address))
        return submission.pods - withdrawn(standing, situation)
    answered = uids_of(standing.pods)
    lost = [
        pod
        for pod in alive
        if pod.metadata.uid in answered
        and not is_gated(pod)
        and is_lost(pod, view, owns)
    ]
    told = StatusReport(phase=GangPhase.RUNNING, decision=decision)
    if lost:
        plan.doubted += lost
        message = _what_was_lost(lost, len(alive), view)
        told = replace(told, reason="PlacementLost", message=message)
    if lost and _recreates(submission):
        message = f"{told.message}; all are deleted, as spec.recovery says"
        plan.told.append(replace(told, message=message, pods=alive))
        plan.removals += alive
        return submission.pods
    plan.told.append(replace(told, pods=tuple(lost)))
    freed = uids_of(pod for pod in lost if is_displaced(pod, view, owns))
    kept = submission.pods | uids_of(standing.pods)
    return kept - freed - withdrawn(standing, situation)


def _what_was_lost(lost: Sequence[Pod], alive: int, view: View) -> str:
    """Say what became of pods that cannot run as they were placed."""
    waiting = [pod for pod in lost if not pod.spec.node_name]
    gone = sorted(
        node for node in set(map(pinned_to, waiting)) if not view.is_node(node)
    )
    names = ", ".join(pod.metadata.name for pod in lost[:NAMED])
    text = f"somebody took the devices of {len(lost)} of {alive} pods: {names}"
    if gone:
        text = f"{len(lost)} of {alive} pods cannot run where they were placed: {names}"
        text += f"; gone are the nodes {', '.join(gone[:NAMED])}"
    return text


def elsewhere(situation: Situation, pods: Iterable[Pod]) -> Iterator[StatusReport]:
    """Tell of pods that no gang answers for, bound to where their devices are not."""
    for pod in pods:
        if is_gated(pod) or is_displaced(pod, situation.view, situation.owns):
            continue
        if is_lost(pod, situation.view, situation.owns):
            name = pinned_to(pod)
            text = f"its claims hold no devices of {name}, which it is pinned to"
            if not pod.spec.node_name and not situation.view.is_node(name):
                text = f"node {name}, which it is pinned to, is gone"
            yield StatusReport(
                phase=GangPhase.RUNNING,
                reason="PlacementLost",
                message=text,
                pods=(pod,),
            )


def plan_commanded(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """Take back what waiting pods hold of a gang that somebody gave up."""
    submission = standing.submission
    plan.patches += plan_withdrawal(standing, standing.waiting, situation.view)
    return submission.pods


def cancelled(pods: Iterable[Pod]) -> StatusReport:
    """Say that somebody gave a gang up."""
    return StatusReport(
        phase=GangPhase.CANCELLED,
        reason="Cancelled",
        message="the gang was cancelled; delete its pods to try again",
        pods=tuple(pods),
    )


def plan_over(
    situation: Situation, standing: Standing, plan: GangPlan
) -> frozenset[str]:
    """Leave nothing behind; then its pods are free, unless they are to wait.

    Those of a gang that others gave up, or that can never fit, wait until one of them
    is made anew.
    """
    submission = standing.submission
    if submission.is_released and submission.command is None:
        # The command that ended it is still to be read: it says who wanted that.
        return submission.pods
    waits = _is_whole(standing) and not submission.is_ended_by_publisher
    if waits or not submission.is_finished:
        steps = plan_withdrawal(standing, standing.waiting, situation.view)
        plan.patches += steps
        if not steps and not submission.is_finished:
            address = situation.address(submission)
            plan.messages.append(ClaimsReleased(**address))
        if steps or not submission.is_finished:
            return submission.pods
    if not any(_may_want(pod) for pod in (*standing.named, *standing.runs)):
        plan.forget.append(submission.uid)
    if not waits:
        return frozenset()
    rejected = isinstance(submission.decision, GangRejected)
    found = standing.waiting
    plan.told.append(pending(submission, found) if rejected else cancelled(found))
    return submission.pods


def _is_whole(standing: Standing) -> bool:
    """Whether every pod that was submitted still waits."""
    wanted = len(standing.submission.pods)
    return not standing.runs and 0 < wanted == len(standing.waiting)


def _may_want(pod: Pod) -> bool:
    """Whether a pod may still be asked for: those before are counted then."""
    return not is_over(pod) and not pod.spec.node_name


def _recreates(submission: Submission) -> bool:
    message = submission.submission
    return message is not None and message.gang.spec.recovery == "Recreate"
