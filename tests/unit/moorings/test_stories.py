"""What was submitted for one gang, and what waits beside it, is told together."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.gang import GangPhase
from contracts.ids import ClusterName, GangUID, Namespace
from contracts.lifecycle import GangRecord, LifecycleMessage
from contracts.messages import GatesOpened, Place, PodRef
from contracts.names import GANG, OF_CLAIM, WORKLOAD
from contracts.reports import WAITING, GroupReported, PodsReport
from moorings.stories import (
    GangQuery,
    GangStory,
    HeldObjects,
    collect_stories,
    count_pods,
)
from tests import builders
from tests.builders.decisions import CLUSTER, gang_allocated, gang_released, submission
from tests.builders.plans import record_of, submission_of
from tests.builders.pods import waiting_pod

NS = builders.NAMESPACE
ONE, TWO = (
    "00000000-0000-4000-8000-000000000001",
    "00000000-0000-4000-8000-000000000002",
)
MISSING = PodsReport(phase=WAITING, reason="PodsMissing", pods=3)


def submitted(uid: str, *pods: str) -> GangRecord:
    """Submit pods of the gang `train`."""
    message = submission_of(
        [waiting_pod(name, gang="train", templates=["gpus"]) for name in pods]
    )
    return record_of(replace(message, uid=GangUID(uid)))


def running(uid: str, *pods: str) -> GangRecord:
    submission_message = submitted(uid, *pods).submission
    assert submission_message is not None
    opened = GatesOpened(
        cluster=CLUSTER, namespace=Namespace(NS), uid=GangUID(uid), attempt=1, state=1
    )
    decision = gang_allocated(uid=uid, pods=len(pods))
    return record_of(submission_message, decision, opened)


def reported(*reports: PodsReport, kind: str = "Gang") -> GroupReported:
    return GroupReported(
        cluster=ClusterName("c"),
        namespace=Namespace(NS),
        kind=kind,
        name="train",
        since="",
        reports=reports,
    )


def test_pods_that_replace_others_are_of_one_story() -> None:
    """And so are those that were not submitted; a lone pod of the name is not."""
    first, second = running(ONE, "a", "b"), submitted(TWO, "c")
    stories = collect_stories(
        [first, second], [reported(MISSING), reported(MISSING, kind="Pod")]
    )
    assert [(s.records, s.is_lone) for s in stories] == [
        ((first, second), False),
        ((), True),
    ]
    assert stories[0].phase == WAITING


def test_a_gang_by_what_made_its_pods_is_no_lone_pod() -> None:
    """What is reported of it belongs to what was submitted under its name."""
    (story,) = collect_stories([running(ONE, "a")], [reported(MISSING, kind="Job")])
    assert not story.is_lone
    assert story.phase == WAITING


def test_gangs_without_pods_are_each_their_own() -> None:
    """Over NATS two may have one name, and neither replaces the other."""
    records = [record_of(submission(builders.gang(uid=u), uid=u)) for u in (ONE, TWO)]
    assert [s.records for s in collect_stories(records, [])] == [
        (record,) for record in records
    ]


def test_stories_are_in_the_order_of_their_names() -> None:
    names = [("b", "a"), ("a", "z"), ("a", "b")]
    records = [
        record_of(submission(builders.gang(name=name, namespace=namespace), uid=name))
        for namespace, name in names
    ]
    stories = collect_stories(records, [])
    assert [(s.namespace, s.name) for s in stories] == sorted(names)


def test_pods_that_share_a_claim_are_counted_one_by_one() -> None:
    pods = tuple(PodRef(name=name, uid=name) for name in "abc")
    message = submission(builders.gang(builders.member(count=1)))
    shared = replace(message, places={"worker": (Place(pods=pods),)})
    assert count_pods(record_of(shared), None) == 3
    assert count_pods(record_of(message), None) == 1


def test_of_a_running_gang_the_pods_that_are_there_count() -> None:
    record = running(ONE, "a", "b")
    assert count_pods(record, None) == 2
    there = HeldObjects(
        pods={f"{NS}/a": GangUID(ONE), f"{NS}/b": GangUID(TWO), f"{NS}/x": GangUID("")}
    )
    assert count_pods(record, there) == 1
    bound = HeldObjects(pods={f"{NS}/a": GangUID(""), f"{NS}/c": GangUID("")})
    assert count_pods(record, bound) == 1
    assert there.has_pod(record, "a")
    assert not there.has_pod(record, "b")


def test_pods_that_wait_count_beside_those_that_run_and_once() -> None:
    (story,) = collect_stories([running(ONE, "a", "b")], [reported(MISSING)])
    assert story.count_pods(None) == 5
    (story,) = collect_stories([submitted(ONE, "a", "b")], [reported(MISSING)])
    assert story.count_pods(None) == 2
    (story,) = collect_stories([], [reported(MISSING)])
    assert story.count_pods(None) == 3
    bound = replace(MISSING, phase=GangPhase.RUNNING, reason="MarkHasNoEffect", pods=1)
    (story,) = collect_stories([], [reported(MISSING, bound)])
    assert story.count_pods(None) == 4


def test_a_report_that_says_nothing_is_no_story() -> None:
    assert collect_stories([], [reported()]) == []
    (story,) = collect_stories([submitted(ONE, "a")], [reported()])
    assert story.reports == ()


def test_a_story_that_is_over_has_its_last_phase() -> None:
    over = record_of(submission(), gang_released())
    (story,) = collect_stories([over], [])
    assert (story.phase, story.living) == (GangPhase.COMPLETED, ())


@pytest.mark.parametrize(
    ("text", "namespace", "is_meant"),
    [
        ("train", None, True),
        ("train", NS, True),
        ("train", "other", False),
        (f"{NS}/train", None, True),
        ("other/train", None, False),
        (ONE, None, True),
        (TWO, None, False),
    ],
)
def test_a_gang_is_named_by_name_namespace_or_uid(
    text: str, namespace: str | None, is_meant: bool
) -> None:
    record = submitted(ONE, "a")
    story = GangStory(namespace=NS, name="train", is_lone=False, records=(record,))
    query = GangQuery.of(text, namespace)
    assert query.is_of(record) is is_meant
    assert query.is_in(story) is is_meant


def test_a_lone_pod_is_told_from_a_gang() -> None:
    message = submitted(ONE, "a").submission
    assert message is not None
    for labels, is_lone in (({}, True), ({GANG: "train"}, False)):
        gang = replace(
            message.gang, metadata=replace(message.gang.metadata, labels=labels)
        )
        (story,) = collect_stories([record_of(replace(message, gang=gang))], [])
        assert story.is_lone is is_lone


def test_gangs_of_one_name_stand_by_age() -> None:
    """So the last one is the one that was submitted last, whatever its uid."""
    first = replace(record_of(submission(uid=TWO)), submission_sequence=1)
    second = replace(record_of(submission(uid=ONE)), submission_sequence=2)
    stories = collect_stories([first, second], [])
    assert [story.records for story in stories] == [(first,), (second,)]


def claimed(uid: str, *messages: LifecycleMessage) -> GangRecord:
    """Submit the claim `data`, which needs no pod."""
    made = builders.gang(name="data", uid=uid)
    notes = {WORKLOAD: f"{OF_CLAIM}/data"}
    made = replace(made, metadata=replace(made.metadata, annotations=notes))
    return record_of(submission(made, uid=uid), *messages)


def test_a_claim_without_a_pod_is_one_story_and_no_gang_of_its_name() -> None:
    gang = record_of(submission(builders.gang(name="data", uid=ONE), uid=ONE))
    again = claimed(TWO)
    over = claimed("three", gang_released("three"))
    report = replace(reported(MISSING, kind=OF_CLAIM), name="data")
    stories = collect_stories([gang, over, again], [report])
    assert [(s.name, s.records) for s in stories] == [
        ("claim/data", (over, again)),
        ("data", (gang,)),
    ]
    assert stories[0].reports == (MISSING,)
    assert count_pods(again, None) == 0


@pytest.mark.parametrize(
    ("typed", "namespace"),
    [
        ("claim/data", None),
        ("resourceclaims/data", NS),
        (f"{NS}/claim/data", None),
        (TWO, None),
    ],
)
def test_a_claim_without_a_pod_is_named_as_such(
    typed: str, namespace: str | None
) -> None:
    query, record = GangQuery.of(typed, namespace), claimed(TWO)
    (story,) = collect_stories([record], [])
    assert query.is_of(record)
    assert query.is_in(story)
    assert not GangQuery.of("data").is_of(record)
    assert not GangQuery.of("data").is_in(story)
