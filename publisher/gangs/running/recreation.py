"""A gang whose pods cannot run, or that lost a part, is made anew as a whole.

This happens only if its author wants it (`recovery: Recreate`) and if somebody makes
every one of its pods again. It is announced on the bus before the first pod is deleted,
so that another publisher deletes the rest: a gang is never left in parts. Pure.
"""

from __future__ import annotations

from msgspec.structs import replace

from contracts.gang import GangPhase
from contracts.lifecycle import PUBLISHER, is_preemption
from contracts.messages import MAX_REASON, CancelGang
from publisher.gangs.context import NextSteps, PlanContext, StatusReport, SubmittedGang
from publisher.gangs.records import PodGangRecord
from publisher.gangs.running.avoidance import pause_left_s
from publisher.gangs.view import uids_of

RECREATE = "Recreate"
_THEN = "; all pods of the gang are deleted, as its recovery says"


def wants_recreation(context: PlanContext, record: PodGangRecord) -> bool:
    """True if a gang wants its pods made anew when they cannot run.

    The Gang object says so now, or else the pods did when they were submitted.
    """
    message, gang = record.submission, context.gang
    if record.ended_by is not None or message is None:
        return False
    return (gang or message.gang).spec.recovery == RECREATE


def plan_recreation(
    context: PlanContext,
    submitted: SubmittedGang,
    report: StatusReport,
    *,
    by_scheduler: bool,
) -> NextSteps:
    """Have all pods of a gang made anew, or report why not now.

    If kube-scheduler refuses them (`by_scheduler`) it may do so again, so the pauses in
    between grow.
    """
    alive = submitted.alive
    pause_s = pause_left_s(context, alive) if by_scheduler else 0.0
    orphan = next((pod for pod in alive if not pod.metadata.controller.uid), None)
    if orphan is not None:
        name = orphan.metadata.name
        text = f"; nobody would recreate pod {name}, so none is deleted"
        return NextSteps(reports=(_extend_report(report, text),))
    if pause_s:
        text = "; all were recreated before, and will be again after a pause"
        return NextSteps(reports=(_extend_report(report, text),), look_again_s=pause_s)
    report = _extend_report(report, _THEN)
    reason = f"{PUBLISHER}{report.reason}: {report.message}"
    address = context.address(submitted.record)
    return NextSteps(
        reports=(report,),
        leaving=uids_of(alive),
        messages=(CancelGang(**address, reason=reason, recreate=True),),
        recreations=int(by_scheduler),
    )


def _extend_report(report: StatusReport, text: str) -> StatusReport:
    room = MAX_REASON - len(f"{PUBLISHER}{report.reason}: {text}")
    return replace(report, message=f"{report.message[:room]}{text}")


def plan_removal(submitted: SubmittedGang) -> NextSteps | None:
    """Delete what is left of a gang whose pods are made anew; None: nothing is."""
    command, alive = submitted.record.ended_by, submitted.alive
    if not submitted.record.is_recreating or not isinstance(command, CancelGang):
        return None
    if not alive:
        return None
    reason, _, message = command.reason.removeprefix(PUBLISHER).partition(": ")
    report = StatusReport(
        phase=GangPhase.RUNNING, reason=reason, message=message, pods=alive
    )
    kept = submitted.record.pods | uids_of(submitted.pods)
    if is_preemption(command):
        return NextSteps(evictions=alive, reports=(report,), kept=kept)
    return NextSteps(removals=alive, reports=(report,), kept=kept)
