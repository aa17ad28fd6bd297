"""Where a gang is in its life follows from what was said last."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.gang import GangPhase
from contracts.ids import ClusterName, GangKey, GangUID, Namespace, SolveID
from contracts.lifecycle import PUBLISHER, GangRecord, LifecycleMessage, is_answer
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    GatesOpened,
    PodWritten,
    Preemption,
    ReleaseGang,
    ReleaseOutcome,
    SubmitGang,
)
from tests.builders import UID, gang

CLUSTER, NAMESPACE, GANG_UID = ClusterName("c"), Namespace("default"), GangUID(UID)
SUBMIT = SubmitGang(cluster=CLUSTER, uid=GANG_UID, gang=gang(namespace="default"))
REJECTED = GangRejected(
    cluster=CLUSTER, namespace=NAMESPACE, uid=GANG_UID, name="train", epoch=1
)
RELEASE = ReleaseGang(cluster=CLUSTER, namespace=NAMESPACE, uid=GANG_UID)
FREED = ClaimsReleased(cluster=CLUSTER, namespace=NAMESPACE, uid=GANG_UID)


def allocated(attempt: int) -> GangAllocated:
    return GangAllocated(
        cluster=CLUSTER,
        namespace=NAMESPACE,
        uid=GANG_UID,
        name="train",
        epoch=1,
        solve=SolveID("s"),
        attempt=attempt,
    )


def pending(attempt: int = 0) -> GangPending:
    return GangPending(
        cluster=CLUSTER,
        namespace=NAMESPACE,
        uid=GANG_UID,
        name="train",
        epoch=1,
        solve=SolveID("s"),
        attempt=attempt,
    )


def released(outcome: ReleaseOutcome) -> GangReleased:
    return GangReleased(
        cluster=CLUSTER,
        namespace=NAMESPACE,
        uid=GANG_UID,
        name="train",
        epoch=1,
        outcome=outcome,
    )


def written(attempt: int) -> AllocationWritten:
    return AllocationWritten(
        cluster=CLUSTER, namespace=NAMESPACE, uid=GANG_UID, attempt=attempt
    )


def opened(attempt: int) -> GatesOpened:
    return GatesOpened(
        cluster=CLUSTER, namespace=NAMESPACE, uid=GANG_UID, attempt=attempt, state=7
    )


def refused(attempt: int) -> AllocationRefused:
    return AllocationRefused(
        cluster=CLUSTER,
        namespace=NAMESPACE,
        uid=GANG_UID,
        attempt=attempt,
        reason="taken",
    )


def lost(attempt: int) -> AllocationLost:
    return AllocationLost(
        cluster=CLUSTER,
        namespace=NAMESPACE,
        uid=GANG_UID,
        attempt=attempt,
        reason="cleared",
    )


def cancel(reason: str = "") -> CancelGang:
    return CancelGang(cluster=CLUSTER, namespace=NAMESPACE, uid=GANG_UID, reason=reason)


OURS = cancel(f"{PUBLISHER}2 of 4 pods are gone")


def record_of(*messages: LifecycleMessage) -> GangRecord:
    record = GangRecord.of(messages[0])
    for sequence, message in enumerate(messages, start=1):
        record = record.apply(message, sequence)
    return record


@pytest.mark.parametrize(
    ("messages", "phase"),
    [
        ((SUBMIT,), GangPhase.PENDING),
        ((SUBMIT, pending()), GangPhase.PENDING),
        ((SUBMIT, allocated(1)), GangPhase.DECIDED),
        ((SUBMIT, allocated(1), written(1)), GangPhase.ALLOCATED),
        ((SUBMIT, allocated(1), written(1), opened(1)), GangPhase.RUNNING),
        ((SUBMIT, allocated(1), opened(1), lost(1)), GangPhase.PENDING),
        ((SUBMIT, allocated(2), opened(1)), GangPhase.DECIDED),
        ((SUBMIT, allocated(1), refused(1)), GangPhase.PENDING),
        ((SUBMIT, allocated(1), written(1), lost(1)), GangPhase.PENDING),
        ((SUBMIT, allocated(1), refused(1), allocated(2)), GangPhase.DECIDED),
        (
            (SUBMIT, allocated(1), written(1), lost(1), allocated(2), written(2)),
            GangPhase.ALLOCATED,
        ),
        ((SUBMIT, released(ReleaseOutcome.COMPLETED)), GangPhase.COMPLETED),
        ((SUBMIT, released(ReleaseOutcome.CANCELLED)), GangPhase.CANCELLED),
        ((SUBMIT, REJECTED), GangPhase.REJECTED),
    ],
)
def test_phase_follows_from_the_messages(
    messages: tuple[LifecycleMessage, ...], phase: GangPhase
) -> None:
    """From the last of each stream, and nothing else."""
    assert record_of(*messages).phase is phase


@pytest.mark.parametrize(
    ("rules", "answers"),
    [
        ((), True),
        ((Rule.QUEUED,), False),
        ((Rule.UNEVALUATED,), False),
        ((Rule.TAKEN,), True),
        ((Rule.QUEUED, Rule.TAKEN), True),
    ],
)
def test_a_notice_that_it_was_not_tried_is_no_answer(
    rules: tuple[Rule, ...], answers: bool
) -> None:
    reasons = tuple(Reason(rule=rule) for rule in rules)
    decision = structs.replace(pending(), reasons=reasons)
    assert is_answer(decision) == answers
    record = GangRecord.of(decision)
    assert not record.is_answered
    assert record.apply(decision, 1).is_answered == answers


def test_what_was_confirmed_of_another_attempt_says_nothing() -> None:
    """The decision counts as taken until its own attempt is heard of."""
    late = record_of(SUBMIT, allocated(2), written(2), refused(1))
    assert late.phase is GangPhase.DECIDED
    assert late.allocated == allocated(2)
    assert record_of(refused(1), SUBMIT, allocated(2)).phase is GangPhase.DECIDED


def test_a_message_that_comes_again_changes_nothing() -> None:
    """Streams may be read twice."""
    record = record_of(SUBMIT, allocated(1), allocated(2), written(1), written(2))
    for sequence, message in ((1, SUBMIT), (2, allocated(1)), (4, written(1))):
        assert record.apply(message, sequence) == record


def test_a_submission_that_was_not_stored_gives_way_to_the_one_that_is_read() -> None:
    """The bus is right."""
    theirs = SubmitGang(
        cluster=CLUSTER,
        uid=GANG_UID,
        gang=gang(namespace="default"),
        submitted_at="2026-11-20T12:00:00Z",
    )
    record = GangRecord.of(SUBMIT).apply(SUBMIT, 0)
    assert record.submission == SUBMIT
    assert record.apply(theirs, 3).submission == theirs
    assert record.apply(theirs, 3).apply(SUBMIT, 0).submission == theirs


@pytest.mark.parametrize(
    ("commands", "counts"),
    [
        ((cancel(), RELEASE), RELEASE),
        ((RELEASE, cancel()), cancel()),
        ((OURS, RELEASE), RELEASE),
        ((RELEASE, OURS), RELEASE),
        ((cancel("no more"), OURS, OURS), cancel("no more")),
    ],
)
def test_of_commands_the_last_counts_and_never_the_publishers_own_before_others(
    commands: tuple[CancelGang | ReleaseGang, ...], counts: CancelGang | ReleaseGang
) -> None:
    """A user's command goes before ours."""
    record = record_of(*commands)
    assert record.command == counts
    assert not record.is_ended_by_publisher
    assert record_of(OURS).is_ended_by_publisher


def test_a_decision_keeps_the_command_that_ended_its_gang() -> None:
    """Commands leave their stream while decisions about living gangs are kept."""
    ended = structs.replace(released(ReleaseOutcome.CANCELLED), command=OURS)
    record = record_of(ended)
    assert record.ended_by == OURS
    assert record.is_ended_by_publisher
    assert record_of(ended, cancel("by hand")).ended_by == cancel("by hand")


@pytest.mark.parametrize(
    ("messages", "outcome"),
    [
        ((SUBMIT, cancel()), ReleaseOutcome.CANCELLED),
        ((SUBMIT, RELEASE), ReleaseOutcome.CANCELLED),
        ((SUBMIT, allocated(1), cancel()), ReleaseOutcome.CANCELLED),
        ((SUBMIT, allocated(1), RELEASE), ReleaseOutcome.COMPLETED),
        ((SUBMIT, allocated(1), opened(1), RELEASE), ReleaseOutcome.COMPLETED),
        ((SUBMIT, allocated(1), opened(1), cancel()), ReleaseOutcome.CANCELLED),
        ((SUBMIT, allocated(1), RELEASE, released(ReleaseOutcome.COMPLETED)), None),
        ((cancel(),), None),
    ],
)
def test_a_command_says_how_a_gang_ends(
    messages: tuple[LifecycleMessage, ...], outcome: ReleaseOutcome | None
) -> None:
    """And nothing of it is in force any more."""
    record = record_of(*messages)
    assert record.ending is outcome
    assert record.is_ending
    assert record.in_force is None


def test_a_released_gang_is_finished_once_its_claims_are_gone() -> None:
    """Being over and being cleared up are two things."""
    record = record_of(SUBMIT, allocated(1), written(1), RELEASE)
    record = record.apply(released(ReleaseOutcome.COMPLETED), 5)
    assert record.is_over
    assert not record.is_finished
    assert record.apply(FREED, 6).is_finished
    assert record_of(SUBMIT, REJECTED).is_finished


def test_the_names_of_pods_are_not_kept() -> None:
    """They would make every record as large as its gang."""
    named = written(1).naming((PodWritten(member="worker", index=0, pod="worker-0"),))
    assert record_of(named).confirmation == written(1)


def test_a_gang_with_a_place_ends_by_its_duration() -> None:
    """A begun second counts as a whole one; without a duration nobody knows."""
    spec = structs.replace(SUBMIT.gang.spec, duration="2h")
    said = structs.replace(SUBMIT, gang=structs.replace(SUBMIT.gang, spec=spec))
    waits = GangRecord.of(said).apply(said, 1, 1000.0)
    assert (waits.duration_s, waits.ends_by_s) == (7200, None)
    assert waits.apply(allocated(1), 1, 1000.5).ends_by_s == 1001 + 7200
    endless = GangRecord.of(SUBMIT).apply(SUBMIT, 1).apply(allocated(1), 1, 1000.5)
    assert (endless.duration_s, endless.ends_by_s) == (None, None)


def test_who_is_told_to_go_has_its_place_since_before_and_until_then() -> None:
    """Also for who reads no more than that."""
    said = Preemption(
        preemptor=GangKey(NAMESPACE, GangUID("high")),
        name="high",
        until="1970-01-01T00:10:00Z",
        since="1970-01-01T00:01:00Z",
    )
    told = structs.replace(allocated(1), preempted=said)
    runs = GangRecord.of(SUBMIT).apply(SUBMIT, 1).apply(allocated(1), 1, 50.0)
    assert runs.preempted_at(0) is None
    after, alone = runs.apply(told, 2, 400.0), GangRecord.of(told).apply(told, 2, 400.0)
    assert (after.placed_since_s, alone.placed_since_s) == (50.0, 60.0)
    assert after.preempted_at(599) == said
    assert after.preempted_at(600) is None
    assert after.apply(RELEASE, 1).preempted_at(0) is None
    garbled = structs.replace(said, until="soon", since="")
    assert (
        runs.apply(structs.replace(told, preempted=garbled), 2).preempted_at(0) is None
    )
