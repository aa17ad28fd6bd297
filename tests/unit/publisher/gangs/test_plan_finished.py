"""What is over leaves nothing behind, and is forgotten once nobody needs it."""

from __future__ import annotations

from contracts.lifecycle import PUBLISHER, LifecycleMessage
from contracts.messages import (
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    GangRejected,
)
from publisher.gangs.context import GroupPlan
from publisher.gangs.patches import Purpose
from publisher.gangs.plan_finished import plan_commanded, plan_finished
from tests import builders
from tests.builders.decisions import gang_allocated, gang_released
from tests.builders.plans import context_of, gang_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

POD = waiting_pod("a", gang="train", templates=["gpus"])
SUBMITTED = submission_of((POD,))
DECISION = gang_allocated()
IDS = {
    "cluster": DECISION.cluster,
    "namespace": DECISION.namespace,
    "uid": DECISION.uid,
}
WRITTEN = AllocationWritten(**IDS, attempt=1)  # type: ignore[arg-type]  # ids of one gang
CANCELLED = CancelGang(**IDS)  # type: ignore[arg-type]  # ids of one gang
GIVEN_UP = CancelGang(**IDS, reason=f"{PUBLISHER}gone")  # type: ignore[arg-type]  # ids of one gang
FREED = ClaimsReleased(**IDS)  # type: ignore[arg-type]  # ids of one gang
HELD = real_claim("a-gpus", allocated=builders.allocation(), reserved=["a"])


def finished(
    *messages: LifecycleMessage, held: bool = False
) -> tuple[GroupPlan, frozenset[str]]:
    plan = GroupPlan()
    record = record_of(SUBMITTED, *messages)
    view = view_of([POD], [HELD if held else real_claim("a-gpus")])
    act = plan_finished if record.is_over else plan_commanded
    return plan, act(context_of(view, record), gang_of(record, POD), plan)


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


def test_what_ended_a_gang_is_read_before_anything_is_done() -> None:
    plan, kept = finished(DECISION, gang_released(), held=True)
    assert plan == GroupPlan()
    assert kept == {"uid-a"}


def test_pods_of_a_rejected_gang_are_told_why() -> None:
    rejected = GangRejected(**IDS, name="train", epoch=1)  # type: ignore[arg-type]  # ids of one gang
    plan, kept = finished(rejected)
    assert [report.phase for report in plan.reports] == ["Rejected"]
    assert kept == {"uid-a"}


def test_a_gang_without_pods_is_forgotten() -> None:
    record = record_of(SUBMITTED, DECISION, CANCELLED, gang_released(), FREED)
    plan = GroupPlan()
    assert not plan_finished(context_of(view_of(), record), gang_of(record), plan)
    assert plan.forget == [record.uid]
