"""Authors are told the one thing that keeps their pods waiting."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.codec import encode
from contracts.gang import GangPhase
from contracts.messages import MAX_REASON, AllocationRefused, GangRejected
from contracts.reports import WAITING, PodsReport
from publisher.gangs.context import StatusReport
from publisher.gangs.reports import report_cancelled, report_on_bus, report_undecided
from tests.builders.decisions import gang_allocated, gang_pending
from tests.builders.plans import record_of, submission_of
from tests.builders.pods import waiting_pod

PODS = (waiting_pod("a", gang="train", templates=["gpus"]),)
SUBMITTED = submission_of(PODS)
DECISION = gang_allocated()
IDS: dict[str, Any] = {
    "cluster": DECISION.cluster,
    "namespace": DECISION.namespace,
    "uid": DECISION.uid,
}
REASONS = (
    Reason(rule=Rule.NODE_SELECTION, message="first"),
    Reason(rule=Rule.WITHDRAWN, message="second"),
)


def test_before_a_decision_the_solver_is_waited_for() -> None:
    """Nobody is to blame yet."""
    report = report_undecided(record_of(SUBMITTED), PODS)
    assert (report.phase, report.reason) == (GangPhase.PENDING, "Undecided")
    assert report.pods == PODS


def test_reasons_of_the_solver_come_first() -> None:
    """The word is that of the first; the text has them all."""
    pending = replace(gang_pending(), reasons=REASONS)
    report = report_undecided(record_of(SUBMITTED, pending), PODS)
    assert (report.phase, report.reason) == (
        GangPhase.PENDING,
        str(Rule.NODE_SELECTION),
    )
    assert "first" in report.message
    assert "second" in report.message


def test_a_rejected_gang_is_told_that_it_is() -> None:
    """It waits for nothing any more."""
    rejected = GangRejected(**IDS, name="train", epoch=1, reasons=REASONS)
    report = report_undecided(record_of(SUBMITTED, rejected), PODS)
    assert report.phase == GangPhase.REJECTED


def test_an_attempt_that_was_not_written_says_why() -> None:
    """In the words of the API server."""
    refused = AllocationRefused(**IDS, attempt=1, reason="quota")
    report = report_undecided(record_of(SUBMITTED, DECISION, refused), PODS)
    assert (report.reason, report.message) == ("AllocationRefused", "quota")


def test_a_long_text_is_cut() -> None:
    """Conditions and events have limits."""
    many = tuple(Reason(rule=Rule.WITHDRAWN, message="x" * 100) for _ in range(20))
    pending = replace(gang_pending(), reasons=many)
    report = report_undecided(record_of(SUBMITTED, pending), PODS)
    assert len(report.message) == MAX_REASON


def test_a_cancelled_gang_is_told_how_to_try_again() -> None:
    """Its pods wait until somebody deletes them."""
    report = report_cancelled(iter(PODS))
    assert (report.phase, report.pods) == (GangPhase.CANCELLED, PODS)
    assert "delete its pods" in report.message


def test_the_bus_is_told_what_it_does_not_know() -> None:
    """What was decided or commanded it knows; what is said alike is said once."""
    first, second = (waiting_pod(n, gang="train", templates=["gpus"]) for n in "ab")
    waits = StatusReport(phase=WAITING, reason="PodsMissing", message="2 of 3 pods")
    lost = StatusReport(
        phase=GangPhase.RUNNING, reason="PlacementLost", decision=DECISION
    )
    reports = (
        replace(waits, pods=(first,)),
        replace(waits, pods=(second,)),
        lost,
        StatusReport(phase=GangPhase.DECIDED, decision=DECISION),
        report_undecided(record_of(SUBMITTED), PODS),
        report_cancelled(PODS),
    )
    assert report_on_bus(reports) == (
        PodsReport(
            phase=WAITING,
            reason="PodsMissing",
            message="2 of 3 pods",
            pods=2,
            names=("a", "b"),
        ),
        PodsReport(
            phase=GangPhase.RUNNING, reason="PlacementLost", gang_uid=DECISION.uid
        ),
    )


def test_a_report_on_the_bus_is_bounded() -> None:
    """However many pods, reasons and words there are."""
    pods = tuple(waiting_pod(f"p{n}", gang="train", templates=[]) for n in range(500))
    reports = [
        StatusReport(phase=WAITING, reason=f"R{n}", message="x" * 5000, pods=pods)
        for n in range(100)
    ]
    told = report_on_bus(reports)
    assert len(encode(told)) < 64 << 10
    assert {report.pods for report in told} == {500}
