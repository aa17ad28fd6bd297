"""One event a gang and reason, about the object that leads to all of its pods."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.allocation import Rule
from contracts.gang import Gang, GangPhase
from contracts.ids import NodeName
from contracts.messages import ExpectedStart, NodesLacking
from contracts.meta import OwnerReference
from contracts.reports import WAITING
from contracts.workload import Pod, PodSpec
from publisher.gangs.context import StatusReport
from publisher.gangs.notes import POINTER, Note, list_notes, list_pointers
from publisher.gangs.running.plan_repairs import HELD_TWICE
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.pods import real_claim, waiting_pod


def made_by(name: str, pod: Pod) -> Pod:
    """Give a pod a controller, a Job of a name."""
    owner = OwnerReference(
        api_version="batch/v1", kind="Job", name=name, uid=f"uid-{name}"
    )
    owners = (replace(owner, controller=True),)
    return replace(pod, metadata=replace(pod.metadata, owner_references=owners))


PODS = tuple(waiting_pod(f"train-{number:04}", gang="train") for number in range(2000))
OF_A_JOB = tuple(made_by("train", pod) for pod in PODS)


def report(*pods: Pod, reason: str = Rule.TAKEN, message: str = "full") -> StatusReport:
    return StatusReport(
        phase=GangPhase.PENDING, reason=reason, message=message, pods=pods
    )


def only(*reports: StatusReport, gang: Gang | None = None) -> Note:
    (note,) = list_notes(reports, gang)
    return note


def about(note: Note) -> tuple[str, str]:
    return note.regarding.kind, note.regarding.name


def test_a_gang_of_thousands_is_told_once_about_what_made_its_pods() -> None:
    """`kubectl describe pod` names the Job, and the Job has the event."""
    note = only(report(*reversed(OF_A_JOB)))
    assert about(note) == ("Job", "train")
    assert note.regarding.uid == "uid-train"
    assert note.related is not None
    assert note.related.name == "train-0000"
    waiting = "(pod train-0000 and 1999 more wait at scheduling gate"
    assert note.message == f"full {waiting} moorings.dev/allocation)"


def test_a_gang_object_is_told_of_all_its_pods() -> None:
    gang = builders.gang(builders.member(count=2000), name="train")
    note = only(report(*OF_A_JOB), gang=gang)
    assert (*about(note), note.reason) == ("Gang", "train", "DevicesTaken")


@pytest.mark.parametrize(
    "pods",
    [
        PODS[:3],
        OF_A_JOB[:1],
        (OF_A_JOB[0], made_by("other", PODS[1])),
        (OF_A_JOB[0], PODS[1]),
    ],
    ids=["made-by-nobody", "one", "of-two-jobs", "one-of-a-job"],
)
def test_what_no_object_leads_to_is_told_of_the_first_pod(
    pods: tuple[Pod, ...],
) -> None:
    note = only(report(*pods))
    assert (*about(note), note.related) == ("Pod", "train-0000", None)
    assert note.reason == "GangDevicesTaken"


def test_reports_of_one_reason_are_one_note() -> None:
    """Such as devices that were taken from several pods."""
    reports = [
        report(pod, reason=HELD_TWICE, message=f"device {number} is taken")
        for number, pod in enumerate(OF_A_JOB[:2])
    ]
    other = report(OF_A_JOB[2], reason="PlacementLost")
    twice, lost = list_notes([*reports, other], None)
    assert twice.message.startswith("device 0 is taken; device 1 is taken (pod train-0")
    assert about(lost) == ("Pod", "train-0002")


@pytest.mark.parametrize(
    ("phase", "reason", "kind"),
    [
        (GangPhase.PENDING, Rule.TAKEN, "Normal"),
        (GangPhase.PENDING, Rule.OUTRANKED, "Normal"),
        (GangPhase.REJECTED, Rule.TAKEN, "Warning"),
        (GangPhase.PENDING, Rule.NO_CANDIDATE, "Warning"),
        (GangPhase.PENDING, Rule.SELECTOR_ERROR, "Warning"),
        (GangPhase.PENDING, "Undecided", "Normal"),
        (GangPhase.PENDING, Rule.QUEUED, "Normal"),
        ("Waiting", "PodsMissing", "Warning"),
        ("Waiting", "ClaimsDiffer", "Warning"),
        (GangPhase.RUNNING, "PlacementLost", "Warning"),
        (GangPhase.RUNNING, "NobodyKnowsThis", "Warning"),
    ],
)
def test_it_is_a_warning_where_something_is_wrong(
    phase: str, reason: str, kind: str
) -> None:
    """A gang that others hold up, and that comes next, has nothing wrong with it."""
    assert only(replace(report(*PODS[:2], reason=reason), phase=phase)).type == kind


def test_a_pod_is_not_named_to_itself() -> None:
    alone = report(PODS[0])
    assert (
        only(alone).message == "full (waits at scheduling gate moorings.dev/allocation)"
    )
    gang = builders.gang(builders.member(), name="train")
    assert only(alone, gang=gang).message.startswith("full (pod train-0000 waits at")
    opened = report(waiting_pod("a", opened_by="uid-red"))
    assert only(opened).message == "full"


def test_a_start_that_is_promised_is_told_beside_why_it_waits() -> None:
    expected = ExpectedStart(time="2026-11-28T14:05:00Z", because="it starts next")
    waits = replace(report(*OF_A_JOB), expected=expected)
    told = [note for note in list_notes([waits], None) if "Expected" in note.reason]
    (note,) = told
    assert about(note) == ("Job", "train")
    assert (note.type, note.reason) == ("Normal", "GangStartExpected")
    assert note.message == (
        "devices are kept for it, and it starts by 2026-11-28T14:05:00Z at the latest: "
        "it starts next"
    )


def test_nodes_that_it_lacks_are_told_beside_why_it_waits() -> None:
    lacks = (NodesLacking(count=2, like=NodeName("a"), shape="4 devices of x"),)
    waits = replace(report(*OF_A_JOB), lacks=lacks)
    told = [note for note in list_notes([waits], None) if "Lacking" in note.reason]
    (note,) = told
    assert about(note) == ("Job", "train")
    assert (note.type, note.reason) == ("Normal", "GangNodesLacking")
    assert note.message == "it lacks 2 more nodes like a (4 devices of x)"


def test_message_fits_the_event() -> None:
    """The API server counts bytes; what is cut is not the pods."""
    message = only(report(*PODS[:2], message="é" * 2000)).message
    assert len(message.encode()) <= 1024
    assert message.endswith("wait at scheduling gate moorings.dev/allocation)")


def test_where_all_is_well_nothing_is_told() -> None:
    assert not list(list_notes([report(*PODS, reason="")], None))
    assert not list(list_notes([report()], None))


@pytest.mark.parametrize(("reason", "after_s"), [("PodsMissing", 3), ("Undecided", 30)])
def test_what_a_slow_queue_explains_is_told_later(reason: str, after_s: float) -> None:
    assert only(report(*PODS[:2], reason=reason)).after_s == after_s


def test_the_first_pods_of_a_waiting_gang_are_pointed_to_it() -> None:
    """Once it waits for half a minute; who has the event itself needs no pointer."""
    pointers = list(list_pointers([report(*reversed(OF_A_JOB))], None))
    assert [about(note) for note in pointers] == [
        ("Pod", f"train-{number:04}") for number in range(32)
    ]
    (first, *_) = pointers
    assert (first.reason, first.type, first.after_s) == (POINTER, "Warning", 30)
    assert first.message.endswith("with its gang: the events of Job train say why")
    assert first.related is not None
    assert (first.related.kind, first.related.name) == ("Job", "train")
    told = list(list_pointers([report(*PODS[:3], reason=Rule.NO_CANDIDATE)], None))
    assert [(*about(note), note.type) for note in told] == [
        ("Pod", "train-0001", "Warning"),
        ("Pod", "train-0002", "Warning"),
    ]
    twice = [report(*OF_A_JOB[:2]), report(*OF_A_JOB[:2], reason="PodsMissing")]
    assert len(list(list_pointers(twice, None))) == 2


def test_a_pod_that_our_own_queue_keeps_is_not_warned() -> None:
    queued = report(*OF_A_JOB[:2], reason=Rule.QUEUED)
    assert {note.type for note in list_pointers([queued], None)} == {"Normal"}


def test_a_pod_at_no_gate_of_ours_is_not_said_to_be_there() -> None:
    alike = (replace(pod, spec=PodSpec()) for pod in OF_A_JOB[:2])
    waits = replace(report(*alike, reason="MarkHasNoEffect"), phase=WAITING)
    (first, _) = list_pointers([waits], None)
    assert first.message == "waits with its gang: the events of Job train say why"


@pytest.mark.parametrize(
    ("phase", "reason"),
    [
        (GangPhase.PENDING, "Undecided"),
        (GangPhase.PENDING, ""),
        (GangPhase.RUNNING, Rule.GROWING),
        (GangPhase.DECIDED, Rule.GROWING),
    ],
)
def test_pods_with_which_nothing_is_wrong_are_pointed_nowhere(
    phase: str, reason: str
) -> None:
    waits = replace(report(*OF_A_JOB[:2], reason=reason), phase=phase)
    assert not list(list_pointers([waits], None))


def test_a_claim_without_a_pod_is_told_what_it_has_and_why_it_waits() -> None:
    claim = builders.labelled(real_claim("data"))
    held = StatusReport(phase=GangPhase.ALLOCATED, decision=gang_allocated(name="data"))
    (note,) = list_notes([held], claim)
    assert (*about(note), note.type, note.reason) == (
        "ResourceClaim",
        "data",
        "Normal",
        "Allocated",
    )
    device = f"gpu.example.com/{builders.NODE}/gpu-0"
    assert note.message == (
        f"it is kept until it is deleted: {device} on node {builders.NODE} "
        "(solve solve-1, attempt 1)"
    )
    (note,) = list_notes([report()], claim)
    assert (*about(note), note.reason, note.message) == (
        "ResourceClaim",
        "data",
        "DevicesTaken",
        "full",
    )
    assert list(list_notes([report(), held], None)) == []
