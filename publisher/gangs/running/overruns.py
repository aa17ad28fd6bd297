"""Gangs that run for longer than the duration that their author gave.

Nobody ends them. For whoever plans they count as ending now, so that promises which
rest on their end may move. Pure.
"""

from __future__ import annotations

from contracts.gang import GangPhase
from contracts.times import write_time
from publisher.gangs.context import NextSteps, PlanContext, StatusReport, SubmittedGang
from publisher.gangs.notes import DURATION_EXCEEDED
from publisher.times import seconds_between


def plan_overrun(context: PlanContext, submitted: SubmittedGang) -> NextSteps:
    """Report a gang that was to have ended by now, or look at it again by then."""
    record = submitted.record
    if record.ends_by_s is None or not record.placed_since_s or record.is_ending:
        return NextSteps()
    end = write_time(record.ends_by_s)
    left_s = seconds_between(context.now, end)
    if left_s >= 0:
        return NextSteps(look_again_s=left_s + 1)
    duration = "" if record.submission is None else record.submission.gang.spec.duration
    report = StatusReport(
        phase=GangPhase.RUNNING,
        reason=DURATION_EXCEEDED,
        message=(
            f"it runs for longer than its duration {duration}: it was to end by {end}, "
            "and counts as ending now; gangs that wait for its devices may start later"
        ),
        pods=submitted.alive,
        decision=record.in_force,
    )
    return NextSteps(reports=(report,))
