"""The life of a gang follows from the last messages, in whatever order they come."""

from __future__ import annotations

from itertools import permutations

import pytest

from contracts.gang import GangPhase
from contracts.ids import ClusterName, GangUID, Namespace, SolveID
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    GatesOpened,
    ReleaseGang,
    ReleaseOutcome,
    SubmitGang,
)
from solver.snapshot.snapshot import Snapshot, SnapshotMessage, apply
from tests.builders import UID, gang

WHO = {
    "cluster": ClusterName("c"),
    "namespace": Namespace("default"),
    "uid": GangUID(UID),
}
SUBMIT = SubmitGang(
    cluster=ClusterName("c"), uid=GangUID(UID), gang=gang(namespace="default")
)
DECIDED = {**WHO, "name": "train", "epoch": 1}


def allocated(attempt: int) -> GangAllocated:
    return GangAllocated(**DECIDED, solve=SolveID("s"), attempt=attempt)  # type: ignore[arg-type]  # ids of one gang


def pending(attempt: int = 0) -> GangPending:
    return GangPending(**DECIDED, solve=SolveID("s"), attempt=attempt)  # type: ignore[arg-type]  # ids of one gang


def written(attempt: int) -> AllocationWritten:
    return AllocationWritten(**WHO, attempt=attempt)  # type: ignore[arg-type]  # ids of one gang


def opened(attempt: int) -> GatesOpened:
    return GatesOpened(**WHO, attempt=attempt, state=7)  # type: ignore[arg-type]  # ids of one gang


def refused(attempt: int) -> AllocationRefused:
    return AllocationRefused(**WHO, attempt=attempt, reason="taken")  # type: ignore[arg-type]  # ids of one gang


def lost(attempt: int) -> AllocationLost:
    return AllocationLost(**WHO, attempt=attempt, reason="cleared")  # type: ignore[arg-type]  # ids of one gang


def released(outcome: ReleaseOutcome) -> GangReleased:
    return GangReleased(**DECIDED, outcome=outcome)  # type: ignore[arg-type]  # ids of one gang


CANCEL = CancelGang(**WHO)  # type: ignore[arg-type]  # ids of one gang
RELEASE = ReleaseGang(**WHO)  # type: ignore[arg-type]  # ids of one gang


def believed(*messages: SnapshotMessage) -> Snapshot:
    snapshot = Snapshot()
    for sequence, message in enumerate(messages, start=1):
        snapshot = apply(snapshot, message, sequence=sequence)
    return snapshot


@pytest.mark.parametrize(
    ("messages", "phase"),
    [
        ((SUBMIT,), GangPhase.PENDING),
        ((SUBMIT, pending()), GangPhase.PENDING),
        ((SUBMIT, allocated(1)), GangPhase.DECIDED),
        ((SUBMIT, allocated(1), written(1)), GangPhase.WRITTEN),
        ((SUBMIT, allocated(1), written(1), opened(1)), GangPhase.RUNNING),
        ((SUBMIT, allocated(1), opened(1), lost(1)), GangPhase.PENDING),
        ((SUBMIT, allocated(2), opened(1)), GangPhase.DECIDED),
        ((SUBMIT, allocated(2), opened(2), written(1)), GangPhase.RUNNING),
        ((SUBMIT, allocated(1), refused(1)), GangPhase.PENDING),
        ((SUBMIT, allocated(1), written(1), lost(1)), GangPhase.PENDING),
        ((SUBMIT, allocated(1), refused(1), allocated(2)), GangPhase.DECIDED),
        (
            (SUBMIT, allocated(1), written(1), lost(1), allocated(2), written(2)),
            GangPhase.WRITTEN,
        ),
        ((SUBMIT, released(ReleaseOutcome.COMPLETED)), GangPhase.COMPLETED),
        ((SUBMIT, released(ReleaseOutcome.CANCELLED)), GangPhase.CANCELLED),
        ((SUBMIT, GangRejected(**DECIDED)), GangPhase.REJECTED),  # type: ignore[arg-type]  # ids of one gang
    ],
)
def test_phase_follows_from_the_messages(
    messages: tuple[SnapshotMessage, ...], phase: GangPhase
) -> None:
    record = believed(*messages).gangs.get(GangUID(UID))
    assert record is not None
    assert record.phase is phase


@pytest.mark.parametrize(
    ("confirmed", "phase"),
    [(written(2), GangPhase.WRITTEN), (opened(2), GangPhase.RUNNING)],
)
def test_order_between_streams_does_not_matter(
    confirmed: SnapshotMessage, phase: GangPhase
) -> None:
    """After a restart each stream is read on its own."""
    streams: tuple[SnapshotMessage, ...] = (SUBMIT, allocated(2), confirmed, RELEASE)
    found = set()
    for order in permutations(enumerate(streams)):
        snapshot = Snapshot()
        for sequence, message in order:
            snapshot = apply(snapshot, message, sequence=sequence)
        record = snapshot.gangs.get(GangUID(UID))
        assert record is not None
        found.add((record.phase, record.attempt, record.ending, len(snapshot.ending)))
    assert found == {(phase, 2, ReleaseOutcome.COMPLETED, 1)}


def test_older_decision_changes_nothing() -> None:
    snapshot = apply(believed(SUBMIT), allocated(2), sequence=20)
    assert apply(snapshot, allocated(1), sequence=10).gangs.get(
        GangUID(UID)
    ) == snapshot.gangs.get(GangUID(UID))


@pytest.mark.parametrize(
    ("messages", "outcome"),
    [
        ((SUBMIT, CANCEL), ReleaseOutcome.CANCELLED),
        ((SUBMIT, RELEASE), ReleaseOutcome.CANCELLED),
        ((SUBMIT, allocated(1), CANCEL), ReleaseOutcome.CANCELLED),
        ((SUBMIT, allocated(1), RELEASE), ReleaseOutcome.COMPLETED),
        ((SUBMIT, allocated(1), opened(1), RELEASE), ReleaseOutcome.COMPLETED),
        ((SUBMIT, allocated(1), opened(1), CANCEL), ReleaseOutcome.CANCELLED),
        ((SUBMIT, allocated(1), RELEASE, released(ReleaseOutcome.COMPLETED)), None),
        ((CANCEL,), None),
    ],
)
def test_commands_end_a_gang_once(
    messages: tuple[SnapshotMessage, ...], outcome: ReleaseOutcome | None
) -> None:
    snapshot = believed(*messages)
    record = snapshot.gangs.get(GangUID(UID))
    assert record is not None
    assert record.ending is outcome
    assert len(snapshot.ending) == (outcome is not None)
    assert not len(snapshot.waiting)
