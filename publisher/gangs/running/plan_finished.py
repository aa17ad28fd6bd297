"""What is left to do for gangs that were given up, or are over.

What their waiting pods hold is taken back, and they are forgotten once none of their
pods needs anything. Pure.
"""

from __future__ import annotations

from contracts.messages import ClaimsReleased, GangRejected
from contracts.workload import Pod
from publisher.gangs.context import NextSteps, PlanContext, SubmittedGang
from publisher.gangs.reports import report_cancelled, report_undecided
from publisher.gangs.rollback import plan_withdrawal
from publisher.gangs.view import is_bypassed, is_over


def plan_commanded(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Take back what waiting pods hold of a gang that somebody gave up."""
    patches = plan_withdrawal(submitted, submitted.waiting, context.view)
    return NextSteps(patches=tuple(patches), kept=submitted.record.pods)


def plan_finished(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Leave nothing behind; then its pods are free, unless they are to wait.

    Those of a gang that others gave up, or that can never fit, wait until one of them
    is made anew.
    """
    record = submitted.record
    if record.is_released and record.ended_by is None:
        # The command that ended it is still to be read: it says who wanted that.
        return NextSteps(kept=record.pods)
    waiting = _list_waiting(context, submitted)
    is_whole = not submitted.opened and 0 < len(record.pods) == len(waiting)
    waits = is_whole and not record.is_ended_by_publisher
    # First nothing may be held for it any more, and that is said.
    if waits or not record.is_finished:
        patches = plan_withdrawal(submitted, submitted.waiting, context.view)
        if patches:
            return NextSteps(patches=tuple(patches), kept=record.pods)
        if not record.is_finished:
            message = ClaimsReleased(**context.address(record))
            return NextSteps(messages=(message,), kept=record.pods)
    # Then it is forgotten, unless a pod may be counted to it by one that comes later.
    pods = (*submitted.requested, *submitted.opened)
    steps = NextSteps()
    if not any(_may_be_asked_for(pod) for pod in pods):
        steps = NextSteps(forget=(record.uid,))
    if not waits:
        return steps
    if isinstance(record.decision, GangRejected):
        report = report_undecided(record, waiting)
    else:
        report = report_cancelled(waiting)
    return steps + NextSteps(reports=(report,), kept=record.pods)


def _list_waiting(context: PlanContext, submitted: SubmittedGang) -> tuple[Pod, ...]:
    """List the pods that wait: at our gate, or for devices on their nodes."""
    bound = (
        pod
        for pod in submitted.pods
        if is_bypassed(pod) and not is_over(pod) and any(context.list_unallocated(pod))
    )
    return (*submitted.waiting, *bound)


def _may_be_asked_for(pod: Pod) -> bool:
    """True if a pod may still be asked for: gangs before are counted then."""
    return not is_over(pod) and not pod.spec.node_name
