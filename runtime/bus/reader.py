"""Reading topics: bytes of a stream become messages that belong to their subjects.

The one reader of every service. It decodes, checks each message against its subject,
refuses what cannot be read (runtime/refusals.py), tells when everything that existed
has come, and ends a reader whose stream lost messages. What a message means is the
caller's, who handles each one in the same frame.

Source: docs/bus.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import structs

from contracts.topics import M, Topic
from runtime import metrics
from runtime.bus import jetstream
from runtime.bus.connection import Connection
from runtime.bus.follower import Skips, Start, follow
from runtime.bus.silence import Silence
from runtime.errors import RestartError
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.wire import Fetched, Incoming, Received, Refused, TopicBatch

log = get_logger(__name__)


async def read(
    connection: Connection,
    topics: Sequence[Topic[Any]],
    names: Sequence[str],
    stop: asyncio.Event,
    *,
    start: Start | None,
    refusals: Refusals,
    survives_restart: bool,
    skips: Skips | None = None,
    once: bool = False,
    patient: bool = True,
) -> AsyncGenerator[TopicBatch[Any], None]:
    """Read topics of one stream until `stop` is set; see `Bus.read`."""
    (stream,) = {topic.stream for topic in topics}
    topics_by_entity = {topic.entity: topic for topic in topics}
    # A topic with fewer names than are given has only the subject of its first ones.
    subjects = [topic.subjects_below(*names[: len(topic.names)]) for topic in topics]
    if start is None:
        every = any(topic.every_message for topic in topics)
        start = "all" if every else "last_per_subject"
    silences = {t.entity: Silence(t.lasts_s) for t in topics if t.lasts_s}
    caught_up = False
    count = 0
    # Closed at once when this ends, so that the consumer goes before the bus does.
    following = follow(
        connection, stream, subjects, stop, start, skips=skips, patient=patient
    )
    async with aclosing(following) as pages:
        async for fetched in pages:
            if fetched.restarted and not survives_restart:
                # What we know was said there: it is found out again at a start.
                raise RestartError(f"the stream {stream} has lost messages")
            batch = _read_fetched(fetched, topics_by_entity, refusals)
            if silences and not once:
                batch = _with_ended(batch, topics_by_entity, silences, connection)
            if not once:
                metrics.STREAM_LAG.labels(stream).set(fetched.pending)
            count += len(batch.messages)
            if batch.caught_up and not (caught_up or once):
                log.info("stream.synced", stream=stream, messages=count)
            caught_up = batch.caught_up
            yield batch


async def read_last(
    connection: Connection, topic: Topic[M], names: Sequence[str]
) -> Incoming[M] | None:
    """Read the last message of one subject; see `Bus.read_last`."""
    subject = topic.subject(*names)
    received = await jetstream.read_last_message(connection, topic.stream, subject)
    return None if received is None else Incoming.of(topic, received)


async def read_newest(
    connection: Connection, topic: Topic[M], names: Sequence[str]
) -> Incoming[M] | None:
    """Read the last message below some names; see `Bus.read_newest`."""
    subjects = topic.subjects_below(*names)
    received = await jetstream.read_last_message(connection, topic.stream, subjects)
    return None if received is None else Incoming.of(topic, received)


async def read_last_or_refused(
    connection: Connection, topic: Topic[M], names: Sequence[str], refusals: Refusals
) -> Incoming[M] | Refused | None:
    """Read the last message of one subject; see `Bus.read_last_or_refused`."""
    subject = topic.subject(*names)
    received: Received | None = None
    with refusals.guard(subject) as guarded:
        received = await jetstream.read_last_message(connection, topic.stream, subject)
    if received is None:
        return guarded.refused
    with refusals.guard(received) as guarded:
        return Incoming.of(topic, received)
    return guarded.refused


class CaughtUp:
    """Tracks whether several topics have been read to where they stood."""

    def __init__(self, topics: Iterable[Topic[Any]]) -> None:
        self._missing = {topic.entity for topic in topics}
        self.event = asyncio.Event()
        """Set from then on."""

    def note(self, topic: Topic[Any], batch: TopicBatch[Any]) -> None:
        """Take note of a batch of the topic."""
        if batch.caught_up:
            self._missing.discard(topic.entity)
        if not self._missing:
            self.event.set()

    def __bool__(self) -> bool:
        return self.event.is_set()


def _with_ended(
    batch: TopicBatch[Any],
    topics_by_entity: dict[str, Topic[Any]],
    silences: dict[str, Silence],
    connection: Connection,
) -> TopicBatch[Any]:
    """Add an end for each subject of which nothing was heard for too long."""
    now_s = asyncio.get_running_loop().time()
    for message in batch.messages:
        silences[message.topic.entity].note(message.subject, now_s)
    count = connection.count if connection.connected else 0
    ended = [
        Incoming.end(topics_by_entity[entity], subject)
        for entity, silence in silences.items()
        for subject in silence.take_ended(count, now_s)
    ]
    return (
        structs.replace(batch, messages=(*batch.messages, *ended)) if ended else batch
    )


def _read_fetched(
    fetched: Fetched, topics_by_entity: dict[str, Topic[Any]], refusals: Refusals
) -> TopicBatch[Any]:
    messages: list[Incoming[Any]] = []
    refused = list(fetched.refused)
    for item in fetched.refused:
        refusals.note(item)
    for received in fetched.messages:
        with refusals.guard(received) as guarded:
            topic = topics_by_entity[received.subject.partition(".")[0]]
            messages.append(Incoming.of(topic, received))
        if guarded.refused is not None:
            refused.append(guarded.refused)
    return TopicBatch(
        messages=tuple(messages),
        refused=tuple(refused),
        caught_up=fetched.synced,
        restarted=fetched.restarted,
        read_up_to=fetched.read_up_to,
    )
