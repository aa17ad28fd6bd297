"""A gang's record depends on what was said of it, and not on how that was read.

Histories are drawn as the bus may hold them, odd ones too: confirmations of attempts
that nobody decided, late ones of older attempts, several commands, an end without a
beginning. Readers get them in every order, some of it twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from contracts.gang import GangPhase
from contracts.ids import ClusterName, GangUID, Namespace, SolveID
from contracts.lifecycle import PUBLISHER, GangRecord, LifecycleMessage
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
from tests.builders import UID, gang

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


def commands() -> SearchStrategy[LifecycleMessage]:
    """Draw commands of others and of publishers."""
    ids = {"cluster": st.just(CLUSTER), "namespace": st.just(NAMESPACE)}
    reasons = st.sampled_from(["", "no more", f"{PUBLISHER}gone", f"{PUBLISHER}taken"])
    return st.builds(
        CancelGang, **ids, uid=st.just(GANG_UID), reason=reasons
    ) | st.builds(ReleaseGang, **ids, uid=st.just(GANG_UID))


def decisions() -> SearchStrategy[LifecycleMessage]:
    """Draw decisions of a few attempts."""
    ids = {
        "cluster": st.just(CLUSTER),
        "namespace": st.just(NAMESPACE),
        "uid": st.just(GANG_UID),
        "name": st.just("train"),
        "epoch": st.integers(1, 2),
    }
    of_solve = {
        "solve": st.sampled_from([SolveID("s"), SolveID("t")]),
        "attempt": st.integers(0, 3),
    }
    return (
        st.builds(GangAllocated, **ids, **of_solve)
        | st.builds(GangPending, **ids, **of_solve)
        | st.builds(GangRejected, **ids)
        | st.builds(GangReleased, **ids, outcome=st.sampled_from(ReleaseOutcome))
    )


def confirmations() -> SearchStrategy[LifecycleMessage]:
    """Draw confirmations of a few attempts."""
    ids = {
        "cluster": st.just(CLUSTER),
        "namespace": st.just(NAMESPACE),
        "uid": st.just(GANG_UID),
    }
    attempts = st.integers(0, 3)
    reasons = st.sampled_from(["taken", "cleared"])
    return (
        st.builds(AllocationWritten, **ids, attempt=attempts)
        | st.builds(GatesOpened, **ids, attempt=attempts, state=st.integers(0, 9))
        | st.builds(AllocationRefused, **ids, attempt=attempts, reason=reasons)
        | st.builds(AllocationLost, **ids, attempt=attempts, reason=reasons)
        | st.builds(ClaimsReleased, **ids)
    )


@st.composite
def histories(draw: st.DrawFn, most: int = 4) -> History:
    """Draw what four streams hold of one gang, at least one message."""
    streams: list[list[LifecycleMessage]] = [
        draw(st.lists(st.just(_submission("stored")), max_size=1)),
        draw(st.lists(commands(), max_size=min(most, 3))),
        draw(st.lists(decisions(), max_size=most)),
        draw(st.lists(confirmations(), min_size=1, max_size=most)),
    ]
    placed = []
    for messages in streams:
        # Other gangs' messages lie between those of this one.
        gaps = draw(
            st.lists(st.integers(1, 3), min_size=len(messages), max_size=len(messages))
        )
        sequences = [sum(gaps[: index + 1]) for index in range(len(gaps))]
        placed.append(tuple(zip(messages, sequences, strict=True)))
    return tuple(placed)


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
    record = read(one_by_one(history))
    # A decision that counts is the last one, and holds devices or is left to them.
    assert (record.allocated is not None) == record.phase.holds_devices
    assert record.allocated in (None, record.placed)
    assert record.in_force in (None, record.placed)
    assert record.placed in (None, record.decision)
    assert record.is_written <= record.was_written
    assert record.is_written <= (record.placed is not None)
    # Who is to be decided holds nothing, and nobody wants its end.
    if record.wants_decision:
        assert record.placed is None
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
    record = read(one_by_one(history))
    unconfirmed = record.with_confirmation(None, 0)
    if getattr(record.confirmation, "attempt", None) != record.attempt:
        assert record.phase == unconfirmed.phase
        assert record.placed == unconfirmed.placed
