"""A gang may be submitted before its pods: it is decided, and waits for them."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.gang import Gang, GangPhase
from contracts.lifecycle import is_by_publisher
from contracts.messages import CancelGang, SubmitGang
from publisher.gangs.context import GroupPlan
from publisher.gangs.plan_reserved import plan_reservation, plan_reserved
from publisher.gangs.records import PodGangRecord
from tests import builders
from tests.builders.decisions import gang_allocated, gang_pending
from tests.builders.plans import context_of, gang_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

HOLDING = builders.gang(builders.member(builders.member_claim(), count=2), hold=True)
PODS = [waiting_pod(name, gang="train", templates=["gpus"]) for name in ("a", "b")]
CLAIMS = [real_claim("a-gpus"), real_claim("b-gpus")]
UIDS = {"uid-a", "uid-b"}


def reserved(*, gang: Gang | None = None) -> SubmitGang:
    """Submit two pods before they are there, for a Gang object if it is given."""
    if gang is None:
        return submission_of(count=2)
    plan = GroupPlan()
    assert plan_reservation(context_of(view_of(gangs=[gang])), gang, plan)
    (message,) = plan.messages
    assert isinstance(message, SubmitGang)
    return message


def planned(
    record: PodGangRecord, pods: int = 2, *gangs: Gang
) -> tuple[GroupPlan, frozenset[str]]:
    plan, there = GroupPlan(), PODS[:pods]
    context = context_of(view_of(there, CLAIMS[:pods], gangs), record)
    kept = plan_reserved(context, gang_of(record, *there), plan)
    return plan, kept


def test_a_gang_object_is_submitted_once_with_its_own_uid() -> None:
    message = reserved(gang=HOLDING)
    assert (message.uid, message.places) == (builders.UID, {})
    plan = GroupPlan()
    record = record_of(message)
    context = context_of(view_of(gangs=[HOLDING]), record)
    assert not plan_reservation(context, HOLDING, plan)
    over = replace(context, records=(), forgotten=lambda _: False)
    assert not plan_reservation(over, HOLDING, plan)
    assert not plan.messages


def test_pods_wait_for_the_decision() -> None:
    plan, kept = planned(record_of(reserved(), gang_pending()))
    assert [report.phase for report in plan.reports] == [GangPhase.PENDING]
    assert kept == UIDS


def test_a_decision_waits_for_its_pods() -> None:
    plan, kept = planned(record_of(reserved(), gang_allocated(pods=2)), pods=1)
    (report,) = plan.reports
    assert (report.phase, report.reason) == (GangPhase.DECIDED, "PodsMissing")
    assert report.message == "its devices are held; 1 of 2 pods are there"
    assert not plan.patches
    assert kept == {"uid-a"}


def test_once_all_pods_are_there_it_is_like_any_other() -> None:
    plan, kept = planned(record_of(reserved(), gang_allocated(pods=2)))
    assert [patch.name for patch in plan.patches] == ["a-gpus", "b-gpus"]
    assert kept == UIDS


def test_a_gang_ends_with_its_gang_object() -> None:
    record = record_of(reserved(gang=HOLDING), gang_allocated(pods=2))
    plan, _ = planned(record, 0, HOLDING)
    assert not plan.messages
    plan, _ = planned(record, 0)
    (message,) = plan.messages
    assert isinstance(message, CancelGang)
    assert is_by_publisher(message)
