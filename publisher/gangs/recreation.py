"""The pods of a gang that cannot run as they were placed are made anew as a whole.

Only where their author wants it (`recovery: Recreate`), and only if somebody makes
every one of them again. It is said on the bus before the first pod is deleted, so that
whoever goes on deletes the others too: a gang is never left in parts. Pure.
"""

from __future__ import annotations

from msgspec.structs import replace

from contracts.gang import GangPhase
from contracts.lifecycle import PUBLISHER
from contracts.messages import MAX_REASON, CancelGang
from publisher.gangs.avoidance import note_recreation, pause_left_s
from publisher.gangs.context import (
    GroupPlan,
    PlanContext,
    StatusReport,
    SubmittedGang,
)
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import uids_of

RECREATE = "Recreate"
_THEN = "; all pods of the gang are deleted, as its recovery says"


def wants_recreation(context: PlanContext, record: PodGangRecord) -> bool:
    """Whether pods that cannot run are to be made anew: as the Gang object says now.

    Without one as it was when they were submitted.
    """
    message, gang = record.submission, context.view.gang(context.group)
    if record.command is not None or message is None:
        return False
    return (gang or message.gang).spec.recovery == RECREATE


def plan_recreation(
    context: PlanContext,
    submitted: SubmittedGang,
    report: StatusReport,
    plan: GroupPlan,
    *,
    by_scheduler: bool,
) -> bool:
    """Have all pods of a gang made anew; False: not now, and the report says why.

    Those that kube-scheduler refuses (`by_scheduler`) may be refused again, so they are
    made anew ever more seldom.
    """
    alive = submitted.alive
    left_s = pause_left_s(context, alive) if by_scheduler else 0.0
    orphan = next((pod for pod in alive if not pod.metadata.controller.uid), None)
    if orphan is not None:
        text = f"; nobody would recreate pod {orphan.metadata.name}, so none is deleted"
    elif left_s:
        plan.look_again_in(left_s)
        text = "; all were recreated before, and will be again after a pause"
    else:
        text = _THEN
    room = MAX_REASON - len(f"{PUBLISHER}{report.reason}: {text}")
    message = f"{report.message[:room]}{text}"
    plan.reports.append(replace(report, message=message))
    if text != _THEN:
        return False
    if by_scheduler:
        note_recreation(context, alive, plan)
    address = context.address(submitted.record)
    reason = f"{PUBLISHER}{report.reason}: {message}"
    plan.leaving |= uids_of(alive)
    plan.messages.append(CancelGang(**address, reason=reason, recreate=True))
    return True


def plan_removal(submitted: SubmittedGang, plan: GroupPlan) -> bool:
    """Delete what is left of a gang whose pods are made anew; False: nothing is."""
    command = submitted.record.command
    if not submitted.record.is_recreating or not isinstance(command, CancelGang):
        return False
    if not submitted.alive:
        return False
    reason, _, message = command.reason.removeprefix(PUBLISHER).partition(": ")
    plan.removals += submitted.alive
    plan.reports.append(
        StatusReport(
            phase=GangPhase.RUNNING,
            reason=reason,
            message=message,
            pods=submitted.alive,
        )
    )
    return True
