"""A gang that must give its place up, as a queue lets another one have it.

The solver says so in the decision, until when and for whom. That is announced like the
end of a gang that is made anew, before the first pod is evicted, so that another
publisher evicts the rest: a gang is never left in parts. Pure.
"""

from __future__ import annotations

from collections.abc import Container

from contracts.gang import GangPhase
from contracts.ids import GangUID
from contracts.lifecycle import PREEMPTED, PUBLISHER
from contracts.messages import MAX_REASON, CancelGang, Preemption
from contracts.names import GANG_UID
from contracts.workload import Pod
from publisher.gangs.context import (
    EndForAnother,
    NextSteps,
    PlanContext,
    StatusReport,
    SubmittedGang,
)
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import is_gated, is_over, uids_of
from publisher.times import seconds_between


def plan_preemption(context: PlanContext, submitted: SubmittedGang) -> NextSteps | None:
    """End a gang for another; None: it may stay."""
    record = submitted.record
    in_force = record.in_force
    said = None if in_force is None else in_force.preempted
    if said is None or seconds_between(said.until, context.now) >= 0:
        return None
    alive = submitted.alive
    if not alive and not submitted.is_reserved:
        return None  # all of its pods have ended by themselves
    report = StatusReport(
        phase=GangPhase.RUNNING,
        reason=PREEMPTED,
        message=describe_preemption(said),
        pods=alive,
        decision=in_force,
    )
    reason = f"{PUBLISHER}{PREEMPTED}: {report.message}"[:MAX_REASON]
    message = CancelGang(**context.address(record), reason=reason, recreate=True)
    end = EndForAnother(said=said, message=message, report=report)
    return NextSteps(
        preemptions=(end,),
        leaving=uids_of(alive),
        kept=record.pods | uids_of(submitted.pods),
    )


def describe_preemption(said: Preemption) -> str:
    """Describe for whom a gang gives up its place."""
    namespace = said.preemptor.namespace
    return f"for {namespace}/{said.name}, of higher priority, as its queue says"


def goes_for(record: PodGangRecord, said: Preemption) -> bool:
    """True if a gang knows that it must go for another, or ends anyway."""
    own = None if record.in_force is None else record.in_force.preempted
    knows = own is not None and own.preemptor == said.preemptor
    return record.is_ending or (knows and own is not None and own.until == said.until)


def runs_for(pod: Pod, gangs: Container[GangUID]) -> bool:
    """True if a pod runs for one of some gangs, and nobody has ended it yet."""
    uid = GangUID(pod.metadata.annotations.get(GANG_UID, ""))
    is_ended = is_over(pod) or pod.metadata.deletion_timestamp is not None
    return uid in gangs and not is_gated(pod) and not is_ended
