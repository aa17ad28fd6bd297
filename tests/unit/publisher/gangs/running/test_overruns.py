"""A gang that runs past its duration is told so, as soon as it does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec.structs import replace

from contracts.messages import GatesOpened
from publisher.gangs.context import NextSteps, PlanContext, SubmittedGang
from publisher.gangs.notes import list_notes
from publisher.gangs.running.overruns import plan_overrun
from publisher.gangs.running.plan_running import plan_running
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.plans import (
    NOW,
    context_of,
    gang_of,
    record_of,
    submission_of,
    view_of,
)
from tests.builders.pods import real_claim, waiting_pod

DECISION = gang_allocated()
OPENED = GatesOpened(
    cluster=DECISION.cluster,
    namespace=DECISION.namespace,
    uid=DECISION.uid,
    attempt=1,
    state=1,
)
HELD = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a"])
POD = waiting_pod(
    "a",
    gang="train",
    templates=["gpus"],
    opened_by=builders.UID,
    node=builders.NODE,
    phase="Running",
)


def planned(
    duration: str,
    runs_s: float,
    plan: Callable[[PlanContext, SubmittedGang], NextSteps] = plan_overrun,
) -> NextSteps:
    """Plan for a gang that runs since so many seconds."""
    said = submission_of((POD,))
    spec = replace(said.gang.spec, duration=duration)
    said = replace(said, gang=replace(said.gang, spec=spec))
    since_s = datetime.fromisoformat(NOW).timestamp() - runs_s
    record = replace(record_of(said, DECISION, OPENED), placed_since_s=since_s)
    context = context_of(view_of([POD], [HELD]), record)
    return plan(context, gang_of(record, POD))


def test_it_is_looked_at_again_when_it_is_to_have_ended() -> None:
    steps = planned("1h", 600)
    assert (steps.reports, steps.look_again_s) == ((), 3001)


def test_it_is_told_since_when_it_should_have_ended() -> None:
    """Beside what else is to be said of it; once."""
    steps = planned("1h", 3601, plan_running)
    _, report = steps.reports
    assert report.reason == "DurationExceeded"
    assert "its duration 1h: it was to end by 2026-11-20T11:59:59Z" in report.message
    (note,) = list_notes([report], None)
    assert (note.type, note.reason) == ("Warning", "GangDurationExceeded")
    assert note.once


def test_who_gives_no_duration_may_run_for_ever() -> None:
    assert planned("", 1e8) == NextSteps()
