"""Gangs are shown by the names that kubectl has for their pods and claims."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.gang import GangPhase
from contracts.ids import GangUID
from contracts.lifecycle import GangRecord
from contracts.messages import (
    AllocationWritten,
    CancelGang,
    GangRejected,
    GatesOpened,
    PodWritten,
    ReleaseOutcome,
)
from contracts.names import OF_CLAIM, WORKLOAD
from contracts.reports import WAITING, PodsReport
from moorings.cli.views import MOST_LINES, print_explanation
from moorings.stories import GangStory, HeldObjects
from moorings.views.gangs import (
    UNDECIDED,
    explain_gang,
    explain_story,
    is_recent,
    view_gang,
    view_members,
    view_pods,
    view_story,
)
from tests import builders
from tests.builders.decisions import (
    gang_allocated,
    gang_pending,
    gang_released,
    submission,
)
from tests.builders.plans import record_of

SUBMITTED = submission(builders.gang(builders.member(count=2), priority=7))
DECISION = gang_allocated(pods=2)
PLACED = record_of(SUBMITTED, DECISION)
IDS: dict[str, Any] = {
    "cluster": DECISION.cluster,
    "namespace": DECISION.namespace,
    "uid": DECISION.uid,
}
POD = PodWritten(
    member="worker", index=0, pod="train-0", claims={"gpus": "train-0-gpus-x"}
)
WRITTEN = AllocationWritten(**IDS, attempt=1, pods=(POD,))
NOWHERE = AllocationWritten(**IDS, attempt=1)
REASON = Reason(rule=Rule.WITHDRAWN, message="no [bold] device", facts={"devices": 3})


def claim_names(written: AllocationWritten | None) -> list[str]:
    """Name the claims of the placed gang."""
    members = view_members(PLACED, written)
    return [claim["name"] for member in members for claim in member["claims"]]


def test_a_row_counts_pods_and_nodes() -> None:
    """Nodes are those of the decision: two pods of one node are on one."""
    row = view_gang(PLACED)
    assert (row["pods"], row["nodes"], row["priority"]) == (2, 1, 7)
    assert (row["attempt"], row["reason"]) == (1, "")


def test_a_gang_that_waits_says_for_what() -> None:
    """For a decision, or for the first reason of the last one."""
    assert view_gang(record_of(SUBMITTED))["reason"] == UNDECIDED
    pending = replace(gang_pending(), reasons=(REASON,))
    assert view_gang(record_of(SUBMITTED, pending))["reason"] == str(REASON)


def test_a_gang_that_was_given_up_says_why() -> None:
    command = CancelGang(**IDS, reason="publisher: GangBroken: no pod runs")
    released = replace(gang_released(), outcome=ReleaseOutcome.CANCELLED)
    record = record_of(SUBMITTED, DECISION, command, released)
    assert view_gang(record)["reason"] == "GangBroken: no pod runs"


def test_claims_have_the_names_that_kubernetes_gave_them() -> None:
    """Until those are known none; without a cluster those of the decision."""
    assert claim_names(WRITTEN) == ["train-0-gpus-x", ""]
    assert claim_names(None) == ["", ""]
    assert claim_names(NOWHERE) == ["train-worker-0-gpus", "train-worker-1-gpus"]
    omitted = replace(NOWHERE, pods_omitted=True)
    assert claim_names(omitted) == ["", ""]


def test_every_pod_of_a_placed_gang_has_a_row() -> None:
    """Also one whose name is not known yet."""
    rows = list(view_pods(PLACED, WRITTEN))
    assert [(row["name"], row["member"]) for row in rows] == [
        ("train-0", "worker/0"),
        ("", "worker/1"),
    ]
    assert list(view_pods(record_of(SUBMITTED), None)) == []


def test_an_explanation_is_printed_as_it_was_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Brackets are no markup, and the facts are counted below their reason."""
    pending = replace(gang_pending(), reasons=(REASON,))
    print_explanation(explain_gang(record_of(SUBMITTED, pending)))
    head, reason, counts = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{builders.NAMESPACE}/train: Pending (attempt 1, solve ")
    assert reason == f"  {Rule.WITHDRAWN}: no [bold] device"
    assert counts == "    devices 3"


def test_a_long_list_of_members_is_cut_and_it_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each member is a line: its pod, its node, its devices with their claim."""
    many = gang_allocated(pods=MOST_LINES + 5)
    print_explanation(explain_gang(record_of(SUBMITTED, many), WRITTEN))
    _, _, first, *_, last = capsys.readouterr().out.splitlines()
    assert first == (
        "  worker/0 pod/train-0 on node-1: gpu-0 of resourceclaim/train-0-gpus-x"
    )
    assert last == "  ... and 5 more; use -o json"


OPENED = GatesOpened(**IDS, attempt=1, state=1)
BOTH = (POD, replace(POD, index=1, pod="train-1", claims={"gpus": "train-1-gpus-y"}))
RUNNING = record_of(SUBMITTED, DECISION, OPENED)
ALL_WRITTEN = replace(WRITTEN, pods=BOTH)
NS = builders.NAMESPACE


def held(*pods: str, uid: str = RUNNING.uid) -> HeldObjects:
    """Let these pods run for the gang, each with its claim; others hold nothing."""
    claims = {"train-0": "train-0-gpus-x", "train-1": "train-1-gpus-y"}
    return HeldObjects(
        pods={f"{NS}/{pod}": GangUID(uid) for pod in pods},
        claims=frozenset(f"{NS}/{claims[pod]}" for pod in pods),
    )


def test_a_pod_that_is_gone_holds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """It is no row, its devices are nobody's, and an explanation says that it went."""
    rows = list(view_pods(RUNNING, ALL_WRITTEN, held("train-1")))
    assert [(row["name"], row["devices"]) for row in rows] == [("train-1", 1)]
    print_explanation(explain_gang(RUNNING, ALL_WRITTEN, held("train-1")))
    _, end, first, second = capsys.readouterr().out.splitlines()
    assert end == "  no end known: it gives no duration"
    assert first == "  worker/0 pod/train-0 (gone) on node-1: holds no devices"
    assert second.startswith("  worker/1 pod/train-1 on node-1: gpu-")


def test_another_pod_of_the_name_is_not_the_one_that_went() -> None:
    """A StatefulSet makes `train-0` anew, for which another gang holds devices."""
    other = HeldObjects(pods={f"{NS}/train-0": GangUID("another")})
    assert list(view_pods(RUNNING, ALL_WRITTEN, other)) == []
    assert view_gang(RUNNING, other)["pods"] == 0


def test_a_pod_that_is_gone_is_shown_while_its_claim_holds_devices() -> None:
    kept = HeldObjects(claims=frozenset((f"{NS}/train-0-gpus-x",)))
    rows = list(view_pods(RUNNING, ALL_WRITTEN, kept))
    assert [(row["name"], row["status"]) for row in rows] == [("train-0", "Gone")]


def test_without_knowing_what_is_held_all_are_shown() -> None:
    rows = list(view_pods(RUNNING, ALL_WRITTEN, None))
    assert [row["name"] for row in rows] == ["train-0", "train-1"]
    written = record_of(SUBMITTED, DECISION, ALL_WRITTEN)
    assert len(list(view_pods(written, ALL_WRITTEN, HeldObjects()))) == 2


MISSING = PodsReport(
    phase=WAITING, reason="PodsMissing", message="3 of 4", pods=3, names=("a", "b", "c")
)


def story(*records: Any, reports: tuple[PodsReport, ...] = ()) -> GangStory:
    return GangStory(
        namespace=NS,
        name="train",
        is_lone=False,
        records=records,
        reports=reports,
        since="2026-01-01T00:00:00+00:00",
    )


def test_a_gang_that_was_never_submitted_has_a_row_and_an_explanation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waiting = story(reports=(MISSING,))
    row = view_story(waiting, None)
    assert (row["phase"], row["pods"], row["nodes"]) == (WAITING, 3, 0)
    assert row["reason"] == "PodsMissing: 3 of 4"
    (explanation,) = explain_story(waiting, {}, None)
    print_explanation(explanation)
    assert capsys.readouterr().out.splitlines() == [
        f"{NS}/train: Waiting",
        "  PodsMissing: 3 of 4",
        "    pods a, b, c",
    ]


def test_replaced_pods_are_in_the_row_of_their_gang() -> None:
    """Two run by the first submission; a third waits for its own to be decided."""
    again = replace(
        record_of(submission(builders.gang(uid="b"), uid="b")), uid=GangUID("b")
    )
    row = view_story(story(RUNNING, again), held("train-0", "train-1"))
    assert (row["phase"], row["pods"]) == (GangPhase.PENDING, 3)
    assert row["reason"] == UNDECIDED
    assert row["submissions"] == [RUNNING.uid, "b"]


def test_what_befell_a_running_gang_is_said_where_it_is_explained() -> None:
    lost = PodsReport(
        phase=GangPhase.RUNNING, reason="PlacementLost", gang_uid=RUNNING.uid
    )
    running = story(RUNNING, reports=(lost, MISSING))
    first, second = explain_story(running, {}, None)
    assert [report["reason"] for report in first["reports"]] == ["PlacementLost"]
    assert [report["reason"] for report in second["reports"]] == ["PodsMissing"]


def test_what_is_over_is_not_shown_unasked() -> None:
    """Only a rejection is news for a while."""
    assert is_recent(story(RUNNING))
    ended = record_of(SUBMITTED, gang_released())
    assert not is_recent(story(ended))
    assert is_recent(story(ended, reports=(MISSING,)))
    rejection = GangRejected(**IDS, name="train", epoch=1)
    now = datetime.now(UTC)
    for minutes, is_shown in ((1, True), (600, False)):
        at = (now - timedelta(minutes=minutes)).isoformat()
        rejected = record_of(replace(SUBMITTED, submitted_at=at), rejection)
        assert is_recent(story(rejected)) is is_shown


def test_pods_without_a_place_are_told_of_a_gang_that_is_in() -> None:
    """They are no fault of it: how many of which member."""
    growing = replace(DECISION, growing={"worker": 3})
    record = record_of(SUBMITTED, growing)
    assert view_gang(record)["reason"] == "Growing: no room yet for 3 of worker"
    assert view_gang(PLACED)["reason"] == ""


def test_what_grew_by_a_later_submission_has_a_place() -> None:
    """Of four pods two were placed at first: what is told is of all that lives."""
    four = submission(builders.gang(builders.member(count=4, min_count=2)))
    first = record_of(four, replace(DECISION, growing={"worker": 2}), OPENED)
    row = view_story(story(first), None)
    assert (row["pods"], row["reason"]) == (2, "Growing: no room yet for 2 of worker")

    def grown(pods: int) -> Any:
        asked = submission(builders.gang(builders.member(count=pods)), uid="b")
        decision = replace(gang_allocated(pods=pods), uid=GangUID("b"))
        return record_of(asked, decision, replace(OPENED, uid=GangUID("b")))

    row = view_story(story(first, grown(1)), None)
    assert (row["pods"], row["reason"]) == (3, "Growing: no room yet for 1 of worker")
    both = story(first, grown(2))
    row = view_story(both, None)
    assert (row["pods"], row["reason"]) == (4, "")
    assert [each["reason"] for each in explain_story(both, {}, None)] == ["", ""]


def test_a_claim_without_a_pod_is_named_as_one_and_has_no_pods() -> None:
    made = builders.gang(name="data")
    notes = {WORKLOAD: f"{OF_CLAIM}/data"}
    metadata = replace(made.metadata, annotations=notes)
    message = submission(replace(made, metadata=metadata))
    row = view_gang(record_of(message, gang_allocated(name="data")))
    assert (row["name"], row["pods"], row["nodes"]) == ("claim/data", 0, 1)


def running(duration: str, since_s: float) -> GangRecord:
    """Make a gang that has a place since then."""
    gang = builders.gang(builders.member(count=2), duration=duration)
    record = record_of(submission(gang), DECISION)
    return replace(record, placed_since_s=since_s)


@pytest.mark.parametrize(
    ("duration", "hours", "said"),
    [
        ("2h", 1, "  ends by 20"),
        ("2h", 3, "  runs for longer than its duration 2h: since 20"),
        ("", 1, "  no end known: it gives no duration"),
    ],
)
def test_the_end_of_a_gang_that_runs_is_told(
    duration: str, hours: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    since = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=hours)
    record = running(duration, since.timestamp())
    ends_by = (since + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert view_gang(record)["endsBy"] == (ends_by if duration else "")
    print_explanation(explain_gang(record))
    assert capsys.readouterr().out.splitlines()[1].startswith(said)


def test_pods_of_a_gang_have_ended_when_the_last_of_them_has() -> None:
    """Replacements begin later; of who has no duration nobody knows."""
    first, later, endless = running("1h", 1e9), running("1h", 2e9), running("", 1e9)
    for records, ends_by in (
        ((first, later), "2033-05-18T04:33:20Z"),
        ((first, endless), ""),
        ((record_of(SUBMITTED),), ""),
    ):
        story = GangStory(namespace="n", name="g", is_lone=False, records=records)
        assert view_story(story, None)["endsBy"] == ends_by
