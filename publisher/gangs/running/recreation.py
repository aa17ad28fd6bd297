"""A gang whose pods cannot run, or that lost a part, is made anew as a whole.

This happens only if its author wants it (`recovery: Recreate`) and if somebody makes
every one of its pods again. What may happen again, a refusal or a failed device, is
counted on the bus: the pauses in between grow, and the author may limit how often.

It is announced on the bus before the first pod is deleted,
so that another publisher deletes the rest: a gang is never left in parts. Pure.
"""

from __future__ import annotations

from msgspec.structs import replace

from contracts.counts import counted
from contracts.gang import GangPhase, GangSpec
from contracts.lifecycle import PUBLISHER, is_preemption
from contracts.messages import MAX_REASON, CancelGang
from publisher.gangs.context import NextSteps, PlanContext, StatusReport, SubmittedGang
from publisher.gangs.records import PodGangRecord
from publisher.gangs.running.avoidance import count_recreations, pause_left_s
from publisher.gangs.view import uids_of

RECREATE = "Recreate"
RECREATIONS_EXHAUSTED = "RecreationsExhausted"
"""The reason that people read of a gang that was made anew as often as it may be."""
_THEN = "; all pods of the gang are deleted, as its recovery says"


def find_recreation(context: PlanContext, record: PodGangRecord) -> GangSpec | None:
    """Return the spec by which a gang wants its pods made anew; None: it does not.

    It is that of the Gang object as it is now, or else of the pods as submitted.
    """
    message, gang = record.submission, context.gang
    if record.ended_by is not None or message is None:
        return None
    spec = (gang or message.gang).spec
    return spec if spec.recovery == RECREATE else None


def plan_recreation(
    context: PlanContext,
    submitted: SubmittedGang,
    report: StatusReport,
    *,
    may_recur: bool,
    limit: int | None = None,
) -> NextSteps:
    """Have all pods of a gang made anew, or report why not now.

    If the same may happen to others in their place (`may_recur`) the pauses in between
    grow, and after the `limit` there is no other time.
    """
    alive = submitted.alive
    pause_s = pause_left_s(context, alive) if may_recur else 0.0
    count = count_recreations(context, alive)
    orphan = next((pod for pod in alive if not pod.metadata.controller.uid), None)
    if orphan is not None:
        name = orphan.metadata.name
        text = f"; nobody would recreate pod {name}, so none is deleted"
        return NextSteps(reports=(_extend_report(report, text),))
    if may_recur and limit is not None and count >= limit:
        return NextSteps(reports=(report, _report_limit(report, count)))
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
        recreations=int(may_recur),
    )


def _report_limit(report: StatusReport, count: int) -> StatusReport:
    text = (
        f"its pods were recreated {counted(count, 'time')}, as often as its "
        f"maxRecreations says, and are not again: {report.reason}: {report.message}"
    )
    return replace(report, reason=RECREATIONS_EXHAUSTED, message=text[:MAX_REASON])


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
