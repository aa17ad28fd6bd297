"""Gangs that were submitted before their pods, and which pod has which place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.gang import Gang, GangPhase
from contracts.lifecycle import PUBLISHER, is_by_publisher
from contracts.messages import CancelGang, ClaimsReleased, ReleaseOutcome, SubmitGang
from contracts.names import INDEX
from contracts.workload import Pod
from publisher.gangs.carry_out.plan_reserved import Places, bind_pods, plan_reserved
from publisher.gangs.context import NextSteps
from publisher.gangs.records import PodGangRecord
from publisher.gangs.submit.plan_submission import plan_reservation
from publisher.gangs.submit.readiness import NotReady
from tests import builders
from tests.builders.decisions import gang_allocated, gang_pending, gang_released
from tests.builders.plans import context_of, gang_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

GANG = builders.gang(builders.member(builders.member_claim(), count=2))
DECISION = gang_allocated(pods=2)


def worker(name: str) -> Pod:
    return waiting_pod(name, gang="train", templates=["gpus"])


def bound(
    waiting: Sequence[Pod],
    claims: Iterable[ResourceClaim] = (),
    opened: Sequence[Pod] = (),
) -> Places | NotReady:
    free = [real_claim(f"{pod.metadata.name}-gpus") for pod in waiting]
    view = view_of([*waiting, *opened], [*free, *claims])
    context = context_of(view)
    return bind_pods(DECISION, GANG, opened=opened, waiting=waiting, context=context)


def names(places: Places | NotReady) -> list[str]:
    assert isinstance(places, dict)
    return ["".join(p.name for p in place.pods) for place in places["worker"]]


def reason(places: Places | NotReady) -> str:
    assert isinstance(places, NotReady)
    return places.reason


def test_pods_get_their_places_in_their_order() -> None:
    places = bound([worker("a"), worker("b")])
    assert names(places) == ["a", "b"]
    assert isinstance(places, dict)
    assert [place.claims for place in places["worker"]] == [("a-gpus",), ("b-gpus",)]


def test_nothing_begins_before_all_are_there() -> None:
    assert reason(bound([worker("a")])) == "PodsMissing"


def test_who_holds_what_was_decided_keeps_it() -> None:
    """Somebody wrote it before this publisher came."""
    held = DECISION.members[1].claims[0].allocation
    pods = [worker("a"), worker("b")]
    claim = real_claim("a-gpus", allocated=held, reserved=["a"], version=2)
    assert names(bound(pods, [claim])) == ["b", "a"]


def test_who_runs_keeps_its_place_and_who_is_gone_leaves_it_empty() -> None:
    running = waiting_pod(
        "a",
        gang="train",
        templates=["gpus"],
        opened_by=builders.UID,
        annotations={INDEX: "worker/1"},
    )
    claim = real_claim("a-gpus")
    assert names(bound([], [claim], [running])) == ["", "a"]
    assert names(bound([worker("b")], [claim], [running])) == ["b", "a"]


def test_pods_that_the_gang_does_not_say_wait() -> None:
    other = waiting_pod("b", gang="train", templates=["nic"])
    assert reason(bound([worker("a"), other], [real_claim("b-nic")])) == "ClaimsDiffer"
    shared = [
        waiting_pod(name, gang="train", shared={"gpus": "one"}) for name in ("a", "b")
    ]
    assert reason(bound(shared, [real_claim("one")])) == "ClaimsDiffer"
    assert reason(bound([waiting_pod("c", gang="train", shared={"gpus": "no"})])) == (
        "ClaimsMissing"
    )


HOLDING = builders.gang(builders.member(builders.member_claim(), count=2), hold=True)
PODS = [waiting_pod(name, gang="train", templates=["gpus"]) for name in ("a", "b")]
CLAIMS = [real_claim("a-gpus"), real_claim("b-gpus")]
UIDS = {"uid-a", "uid-b"}
ADDRESS: dict[str, Any] = {
    "cluster": DECISION.cluster,
    "namespace": DECISION.namespace,
    "uid": DECISION.uid,
}


def reserved(*, gang: Gang | None = None) -> SubmitGang:
    """Submit two pods before they are there, for a Gang object if it is given."""
    if gang is None:
        return submission_of(count=2)
    plan = plan_reservation(context_of(view_of(gangs=[gang])), gang)
    assert plan is not None
    (message,) = plan.messages
    assert isinstance(message, SubmitGang)
    return message


def planned(
    record: PodGangRecord, pods: int = 2, *gangs: Gang
) -> tuple[NextSteps, frozenset[str]]:
    there = PODS[:pods]
    context = context_of(view_of(there, CLAIMS[:pods], gangs), record)
    plan = plan_reserved(context, gang_of(record, *there))
    return plan, plan.kept


def test_a_gang_object_is_submitted_once_with_its_own_uid() -> None:
    message = reserved(gang=HOLDING)
    assert (message.uid, message.places) == (builders.UID, {})
    record = record_of(message)
    context = context_of(view_of(gangs=[HOLDING]), record)
    assert plan_reservation(context, HOLDING) is None
    over = replace(context, records=(), forgotten=lambda _: False)
    assert plan_reservation(over, HOLDING) is None


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


def test_pods_of_a_gang_that_we_gave_up_are_asked_for_anew() -> None:
    """Its object is there, and somebody wants its pods; not if a person ended it."""
    decided = (reserved(gang=HOLDING), gang_allocated(pods=2))
    over = (
        replace(gang_released(), outcome=ReleaseOutcome.CANCELLED),
        ClaimsReleased(**ADDRESS),
    )
    by_us = CancelGang(**ADDRESS, reason=f"{PUBLISHER}GangBroken: no pod runs")
    plan, kept = planned(record_of(*decided, by_us, *over), 2, HOLDING)
    assert (plan.reports, kept) == ((), frozenset())
    by_person = record_of(*decided, CancelGang(**ADDRESS), *over)
    plan, kept = planned(by_person, 2, HOLDING)
    assert [report.reason for report in plan.reports] == ["Cancelled"]
    assert kept == UIDS


def test_a_gang_ends_with_its_gang_object() -> None:
    record = record_of(reserved(gang=HOLDING), gang_allocated(pods=2))
    plan, _ = planned(record, 0, HOLDING)
    assert not plan.messages
    plan, _ = planned(record, 0)
    (message,) = plan.messages
    assert isinstance(message, CancelGang)
    assert is_by_publisher(message)
