"""A gang's record depends on what was said of it, and not on how that was read.

Histories are drawn as the bus may hold them, odd ones too: confirmations of attempts
that nobody decided, late ones of older attempts, several commands, an end without a
beginning. Readers get them in every order, some of it twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from contracts.gang import GangPhase
from contracts.ids import ClusterName, GangUID, Namespace, SolveID
from contracts.lifecycle import (
    PUBLISHER,
    GangRecord,
    LifecycleMessage,
    without_growth,
)
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
    ReleaseGang,
    ReleaseOutcome,
    SubmitGang,
)
from tests.builders import UID, decisions, gang

CLUSTER, NAMESPACE, GANG_UID = ClusterName("c"), Namespace("default"), GangUID(UID)
MOST_ORDERS = 300
"""So many orders are tried of one history."""

Delivery = tuple[LifecycleMessage, int]
"""A message and its sequence in its stream."""
History = tuple[tuple[Delivery, ...], ...]
"""Of each stream what it holds."""


def _submission(submitted_at: str) -> SubmitGang:
    return SubmitGang(
        cluster=CLUSTER,
        uid=GANG_UID,
        gang=gang(namespace="default"),
        submitted_at=submitted_at,
    )


OF_GANG: dict[str, Any] = {
    "cluster": CLUSTER,
    "namespace": NAMESPACE,
    "uid": GANG_UID,
}
OF_DECISION = OF_GANG | {"name": "train", "epoch": 1}
ATTEMPTS = (0, 1, 2, 3)
PODS = tuple(decisions.member_allocated(index=index) for index in range(3))
SMALL: dict[str, Any] = {"members": PODS[:1], "growing": {"worker": 2}}
GROWN: dict[str, Any] = {
    "members": PODS[:2],
    "growing": {"worker": 1},
    "kept": {"worker": 1},
}
COMMANDS: tuple[LifecycleMessage, ...] = (
    *(
        CancelGang(**OF_GANG, reason=f"{who}{n}")
        for who in ("", PUBLISHER)
        for n in "ab"
    ),
    ReleaseGang(**OF_GANG),
)
DECISIONS: tuple[LifecycleMessage, ...] = (
    *(
        GangAllocated(**OF_DECISION, solve=SolveID(solve), attempt=attempt, **more)
        for attempt in ATTEMPTS
        for solve, more in (("s", {}), ("t", {}), ("u", SMALL), ("v", GROWN))
    ),
    *(
        GangPending(**OF_DECISION, solve=SolveID("s"), attempt=attempt)
        for attempt in ATTEMPTS
    ),
    GangRejected(**OF_DECISION),
    *(GangReleased(**OF_DECISION, outcome=outcome) for outcome in ReleaseOutcome),
)
LIVING = tuple(d for d in DECISIONS if isinstance(d, GangAllocated | GangPending))
CONFIRMATIONS: tuple[LifecycleMessage, ...] = (
    *(AllocationWritten(**OF_GANG, attempt=attempt) for attempt in ATTEMPTS),
    *(GatesOpened(**OF_GANG, attempt=attempt, state=7) for attempt in ATTEMPTS),
    *(
        kind(**OF_GANG, attempt=attempt, reason="taken")
        for kind in (AllocationRefused, AllocationLost)
        for attempt in ATTEMPTS
    ),
    *(
        AllocationRefused(**OF_GANG, attempt=attempt, reason="taken", keeps=True)
        for attempt in ATTEMPTS
    ),
    ClaimsReleased(**OF_GANG),
)


def _stream(
    messages: Sequence[LifecycleMessage], most: int
) -> SearchStrategy[tuple[Delivery, ...]]:
    """Draw what a stream holds of the gang; others' messages lie in between."""
    return st.lists(st.sampled_from(messages), max_size=most).map(
        lambda drawn: tuple((message, 2 * n) for n, message in enumerate(drawn, 1))
    )


def histories(most: int = 4) -> SearchStrategy[History]:
    """Draw what four streams hold of one gang, at least one message."""
    return st.tuples(
        _stream([_submission("stored")], 1),
        _stream(COMMANDS, min(most, 3)),
        _stream(DECISIONS, most),
        _stream(CONFIRMATIONS, most),
    ).filter(any)


def read(deliveries: Sequence[Delivery]) -> GangRecord:
    """Fold messages in this order."""
    record = GangRecord.of(deliveries[0][0])
    for message, sequence in deliveries:
        record = record.apply(message, sequence)
    return record


def one_by_one(history: History) -> list[Delivery]:
    """List one stream after the other."""
    return [delivery for stream in history for delivery in stream]


def interleavings(history: History) -> Iterator[list[Delivery]]:
    """Go through all orders that keep the order within each stream."""
    if not any(history):
        yield []
    for index, stream in enumerate(history):
        if stream:
            rest = (*history[:index], stream[1:], *history[index + 1 :])
            for order in interleavings(rest):
                yield [stream[0], *order]


@given(histories(most=2))
def test_streams_may_be_read_in_any_order_between_them(history: History) -> None:
    """The record is a function of the messages of each stream."""
    expected = read(one_by_one(history))
    for order in islice(interleavings(history), MOST_ORDERS):
        assert read(order) == expected


@given(histories(), st.data())
def test_messages_may_come_again_and_before_their_turn(
    history: History, data: st.DataObject
) -> None:
    """Streams are read anew after a reconnect, own messages applied before."""
    messages = one_by_one(history)
    deliveries = data.draw(st.permutations(messages))
    again = data.draw(st.lists(st.sampled_from(messages), max_size=6))
    mixed = data.draw(st.permutations([*deliveries, *again]))
    assert read(mixed) == read(messages)
    assert read([*messages, *again]) == read(messages)


@given(histories(), st.data())
def test_a_submission_of_ours_that_was_not_stored_leaves_no_trace(
    history: History, data: st.DataObject
) -> None:
    """Another publisher's was first: ours has no place in the stream."""
    stored = (((_submission("stored"), 1),), *history[1:])
    messages = one_by_one(stored)
    place = data.draw(st.integers(0, len(messages)))
    ours = (_submission("ours"), 0)
    assert read([*messages[:place], ours, *messages[place:]]) == read(messages)


@given(histories())
def test_a_restart_finds_what_was_known(history: History) -> None:
    """Readers begin with the last message of each stream.

    Of commands with all that are kept: the publisher's own may hide another's.
    """
    submitted, commanded, decided, confirmed = history
    kept = (submitted, commanded, decided[-1:], confirmed[-1:])
    assert read(one_by_one(kept)) == read(one_by_one(history))


@given(histories())
def test_what_holds_in_every_phase(history: History) -> None:
    """Phase and what is allocated never contradict each other."""
    record = read(one_by_one(history))
    # A decision that counts is the last one, and holds devices or is left to them.
    assert (record.allocated is not None) == record.phase.holds_devices
    assert record.allocated in (None, record.placed)
    assert record.in_force in (None, record.placed)
    if record.placed not in (None, record.decision):
        # Growth was refused: those that had a place before have it still.
        assert isinstance(record.decision, GangAllocated)
        assert record.placed == without_growth(record.decision)
        assert record.phase is GangPhase.ALLOCATED
    assert record.is_written <= record.was_written
    assert record.is_written <= (record.placed is not None)
    # Who is to be decided holds nothing, and nobody wants its end.
    if record.wants_decision:
        assert record.placed is None
        assert not record.is_ending
    # Who may grow holds devices, and nobody wants its end.
    if record.wants_growth:
        assert record.allocated is not None
        assert record.allocated.growing
        assert not record.is_ending
    # What is over stays over, whatever else was said.
    assert record.is_over == isinstance(record.decision, GangRejected | GangReleased)
    assert record.is_finished <= record.is_over <= record.is_ending
    assert (record.ending is not None) <= (record.is_ending and not record.is_over)
    # Why it waits or was rejected is asked of nobody else.
    waits = record.phase in (GangPhase.PENDING, GangPhase.REJECTED)
    assert bool(record.reasons) <= waits


@given(histories())
def test_only_what_was_confirmed_of_the_decided_attempt_moves_the_phase(
    history: History,
) -> None:
    """A confirmation of another attempt changes nothing."""
    record = read(one_by_one(history))
    unconfirmed = record.with_confirmation(None, 0)
    if getattr(record.confirmation, "attempt", None) != record.attempt:
        assert record.phase == unconfirmed.phase
        assert record.placed == unconfirmed.placed


@given(histories())
def test_no_pod_loses_its_place_by_growth(history: History) -> None:
    """Whatever becomes of the decision that lets a gang grow, the kept ones stay."""
    record = read(one_by_one(history))
    decision = record.decision
    if isinstance(decision, GangAllocated) and record.placed is not None:
        assert set(map(str, decision.members[:1])) <= set(
            map(str, record.placed.members)
        )
        placed, growing = len(record.placed.members), record.placed.growing
        if decision.members:
            assert placed + sum(growing.values()) == len(PODS)


@given(histories(), st.data())
def test_a_gang_that_left_the_streams_may_live_another_life(
    history: History, data: st.DataObject
) -> None:
    """Who remembers the one before knows the next as who never heard of it.

    All that was said of a gang is removed when it has been over for long; only then
    its subject takes another submission. What follows may be read before that.
    """
    over = (GangReleased(**OF_DECISION, outcome=ReleaseOutcome.COMPLETED), 100)
    submitted = (((_submission("stored"), 1),), *history[1:])
    before = read([*one_by_one(submitted), over])
    again = (_submission("again"), 200)
    decided: list[Delivery] = [
        (message, 200 + n)
        for n, message in enumerate(data.draw(st.lists(st.sampled_from(LIVING))))
    ]
    expected = read([again, *decided])

    place = data.draw(st.integers(0, len(decided)))
    record = before
    for message, sequence in [*decided[:place], again, *decided[place:]]:
        record = record.apply(message, sequence)

    assert record == expected
