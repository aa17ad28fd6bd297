"""Gangs that are over are forgotten in time; whoever holds devices never is."""

from __future__ import annotations

from contracts.gang import GangPhase
from contracts.ids import ClusterName, GangUID, Namespace, SolveID
from contracts.messages import (
    GangAllocated,
    GangReleased,
    ReleaseGang,
    ReleaseOutcome,
    SubmitGang,
)
from solver.snapshot.retention import KEPT_GANGS
from solver.snapshot.snapshot import GangForgotten, Snapshot, apply
from tests.builders import gang

CLUSTER, NAMESPACE = ClusterName("c"), Namespace("default")


def uid(number: int) -> GangUID:
    return GangUID(f"00000000-0000-4000-8000-{number:012}")


def submitted(snapshot: Snapshot, number: int) -> Snapshot:
    asked = gang(namespace=NAMESPACE, uid=uid(number))
    message = SubmitGang(cluster=CLUSTER, uid=uid(number), gang=asked)
    return apply(snapshot, message, sequence=number)


def allocated(snapshot: Snapshot, number: int) -> Snapshot:
    message = GangAllocated(
        cluster=CLUSTER,
        namespace=NAMESPACE,
        name="train",
        uid=uid(number),
        epoch=1,
        solve=SolveID("s"),
        attempt=1,
    )
    return apply(snapshot, message, sequence=number)


def released(snapshot: Snapshot, number: int) -> Snapshot:
    message = GangReleased(
        cluster=CLUSTER,
        namespace=NAMESPACE,
        name="train",
        uid=uid(number),
        epoch=1,
        outcome=ReleaseOutcome.COMPLETED,
    )
    return apply(snapshot, message, sequence=number)


def commanded(snapshot: Snapshot, number: int) -> Snapshot:
    message = ReleaseGang(cluster=CLUSTER, namespace=NAMESPACE, uid=uid(number))
    return apply(snapshot, message)


def test_the_gangs_that_ended_last_are_kept_and_the_waiting_and_running_are() -> None:
    snapshot = submitted(Snapshot(), 1)
    snapshot = allocated(submitted(snapshot, 2), 2)
    for number in range(3, KEPT_GANGS + 13):
        snapshot = released(submitted(snapshot, number), number)
    assert len(snapshot.gangs) == KEPT_GANGS + 2
    phases = [r.phase for n in (1, 2) if (r := snapshot.gangs.get(uid(n)))]
    assert phases == [GangPhase.PENDING, GangPhase.DECIDED]
    assert snapshot.gangs.get(uid(12)) is None
    assert snapshot.gangs.get(uid(13)) is not None
    assert set(snapshot.waiting) == {uid(1)}


def test_nothing_is_forgotten_before_its_submission_was_read() -> None:
    """After a restart decisions may be read before the submissions they answer."""
    snapshot = Snapshot()
    numbers = range(1, KEPT_GANGS + 20)
    for number in numbers:
        snapshot = released(snapshot, number)
    assert len(snapshot.unknown) == len(numbers)
    for number in numbers:
        snapshot = submitted(snapshot, number)
    assert not len(snapshot.waiting)
    assert not len(snapshot.unknown)
    assert len(snapshot.gangs) == KEPT_GANGS


def test_a_late_message_about_a_forgotten_gang_wakes_nobody() -> None:
    snapshot = commanded(Snapshot(), 1)
    assert not len(snapshot.waiting)
    assert not len(snapshot.ending)
    snapshot = apply(snapshot, GangForgotten(uid=uid(1)))
    assert not len(snapshot.gangs)
    assert not len(snapshot.unknown)


def test_a_gang_that_holds_devices_is_never_forgotten() -> None:
    snapshot = allocated(Snapshot(), 1)
    assert apply(snapshot, GangForgotten(uid=uid(1))) is snapshot
    known = submitted(Snapshot(), 2)
    assert apply(known, GangForgotten(uid=uid(2))) is known
