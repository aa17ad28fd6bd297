"""Bytes become messages of their subjects; what belongs nowhere is refused, by name."""

from __future__ import annotations

from msgspec import structs

from contracts.ids import ClusterName, NodeName
from contracts.messages import DevicesAnnounced
from contracts.topics import HEALTH, INVENTORIES
from runtime.bus.reader import CaughtUp, _read_fetched
from runtime.refusals import Refusals
from runtime.wire import Fetched, Received, Refused, TopicBatch
from tests.builders import devices, pool

SAID = DevicesAnnounced(cluster=ClusterName("east"), node=NodeName("n"), pools=())
SUBJECT = INVENTORIES.subject_of(SAID)
BYTES = INVENTORIES.codec.encode(SAID)
QUIET: TopicBatch[DevicesAnnounced] = TopicBatch(messages=(), caught_up=False)
CAUGHT_UP: TopicBatch[DevicesAnnounced] = TopicBatch(messages=(), caught_up=True)


def received(data: bytes, subject: str = SUBJECT) -> Received:
    """Receive bytes on a subject."""
    return Received(subject=subject, data=data, sequence=7, time_s=0.0)


def read(*messages: Received) -> tuple[TopicBatch[DevicesAnnounced], Refusals]:
    """Read what was fetched; returns what was refused as well."""
    refusals = Refusals()
    fetched = Fetched(messages=messages, synced=True)
    return _read_fetched(fetched, {"inv": INVENTORIES}, refusals), refusals


def test_everything_is_caught_up_once_each_topic_was() -> None:
    """And stays so, whatever comes afterwards."""
    caught_up = CaughtUp((INVENTORIES, HEALTH))
    caught_up.note(INVENTORIES, CAUGHT_UP)
    caught_up.note(HEALTH, QUIET)
    assert not caught_up
    caught_up.note(HEALTH, CAUGHT_UP)
    caught_up.note(INVENTORIES, QUIET)
    assert caught_up
    assert caught_up.event.is_set()


def test_messages_are_read_in_their_order() -> None:
    """Each with the names of its subject."""
    again = structs.replace(SAID, pools=(pool(*devices(1)),))
    batch, refusals = read(received(BYTES), received(INVENTORIES.codec.encode(again)))
    assert [incoming.message for incoming in batch.messages] == [SAID, again]
    assert batch.messages[0].names == ("east", "n")
    assert not refusals.counts
    assert (batch.caught_up, batch.refused) == (True, ())


def test_a_message_that_cannot_be_read_stops_no_other() -> None:
    """Wrong bytes, and a message about another node than its subject."""
    elsewhere = INVENTORIES.subject("east", "other")
    said = (received(b"{"), received(BYTES, elsewhere), received(BYTES))
    batch, refusals = read(*said)
    assert len(batch.messages) == 1
    assert [refused.subject for refused in batch.refused] == [SUBJECT, elsewhere]
    assert refusals.counts == {"inv": 2}


def test_what_did_not_unpack_is_refused_as_well() -> None:
    """The follower found it; the sequence goes on behind it."""
    refusals = Refusals()
    packed = Refused(subject=SUBJECT, reason="does not unpack", sequence=9)
    fetched = Fetched(messages=(received(BYTES),), refused=(packed,), synced=False)
    batch = _read_fetched(fetched, {"inv": INVENTORIES}, refusals)
    assert batch.refused == (packed,)
    assert batch.last_sequence == 9
    assert refusals.counts["inv"] == 1
