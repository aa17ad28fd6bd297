"""What is left to do for gangs that were given up, or are over."""

from __future__ import annotations

from typing import Any

from contracts.lifecycle import PUBLISHER, LifecycleMessage
from contracts.messages import (
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    GangRejected,
    ReleaseGang,
)
from publisher.gangs.context import NextSteps
from publisher.gangs.patches import Purpose
from publisher.gangs.running.plan_finished import plan_commanded, plan_finished
from tests import builders
from tests.builders.decisions import gang_allocated, gang_released
from tests.builders.plans import context_of, gang_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

POD = waiting_pod("a", gang="train", templates=["gpus"])
SUBMITTED = submission_of((POD,))
DECISION = gang_allocated()
IDS: dict[str, Any] = {
    "cluster": DECISION.cluster,
    "namespace": DECISION.namespace,
    "uid": DECISION.uid,
}
WRITTEN = AllocationWritten(**IDS, attempt=1)
OURS = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a"])


CANCELLED = CancelGang(**IDS)
GIVEN_UP = CancelGang(**IDS, reason=f"{PUBLISHER}gone")
FREED = ClaimsReleased(**IDS)


def finished(
    *messages: LifecycleMessage, held: bool = False
) -> tuple[NextSteps, frozenset[str]]:
    record = record_of(SUBMITTED, *messages)
    view = view_of([POD], [OURS if held else real_claim("a-gpus")])
    act = plan_finished if record.is_over else plan_commanded
    plan = act(context_of(view, record), gang_of(record, POD))
    return plan, plan.kept


def test_what_waiting_pods_hold_is_taken_back_before_it_is_said() -> None:
    plan, kept = finished(DECISION, WRITTEN, CANCELLED, held=True)
    assert [patch.purpose for patch in plan.patches] == [Purpose.WITHDRAW]
    plan, kept = finished(DECISION, CANCELLED, gang_released(), held=True)
    assert [patch.purpose for patch in plan.patches] == [Purpose.WITHDRAW]
    assert not plan.messages
    plan, kept = finished(DECISION, CANCELLED, gang_released())
    assert [type(message) for message in plan.messages] == [ClaimsReleased]
    assert kept == {"uid-a"}


def test_pods_of_a_cancelled_gang_wait_and_are_told() -> None:
    plan, kept = finished(DECISION, CANCELLED, gang_released(), FREED)
    assert [report.reason for report in plan.reports] == ["Cancelled"]
    assert kept == {"uid-a"}
    assert not plan.forget


def test_pods_of_a_gang_that_the_publisher_gave_up_are_free() -> None:
    plan, kept = finished(DECISION, GIVEN_UP, gang_released(), FREED)
    assert not plan.reports
    assert not kept


def test_pods_that_wait_again_after_their_end_are_free() -> None:
    """As after a restored backup; what a user releases is released."""
    ended = ReleaseGang(**IDS, reason=f"{PUBLISHER}no pod is left")
    plan, kept = finished(DECISION, ended, gang_released(), FREED)
    assert (plan.reports, kept) == ((), frozenset())
    plan, kept = finished(DECISION, ReleaseGang(**IDS), gang_released(), FREED)
    assert kept == {"uid-a"}


def test_what_ended_a_gang_is_read_before_anything_is_done() -> None:
    plan, kept = finished(DECISION, gang_released(), held=True)
    assert plan == NextSteps(kept=kept)
    assert kept == {"uid-a"}


def test_pods_of_a_rejected_gang_are_told_why() -> None:
    rejected = GangRejected(**IDS, name="train", epoch=1)
    plan, kept = finished(rejected)
    assert [report.phase for report in plan.reports] == ["Rejected"]
    assert kept == {"uid-a"}


def test_a_gang_without_pods_is_forgotten() -> None:
    record = record_of(SUBMITTED, DECISION, CANCELLED, gang_released(), FREED)
    plan = plan_finished(context_of(view_of(), record), gang_of(record))
    assert plan == NextSteps(forget=(record.uid,))
