"""The bus of a process: publish, follow, read and keep bytes, all with one connection.

The one place where services meet NATS. Knows nothing of what messages mean; the
client library stops below, in `connection.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from contracts.streams import STREAMS, Stream
from contracts.topics import M, Topic
from runtime.bus import blobs, jetstream, publishing, reader
from runtime.bus.connection import Connection
from runtime.bus.follower import Skips, Start, follow
from runtime.bus.streams import StreamHealth, StreamUsage, stream_health, stream_usage
from runtime.bus.streams import ensure_streams as create_streams
from runtime.bus.subscription import Delivery
from runtime.errors import BusError
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.wire import (
    BusSettings,
    Fetched,
    Incoming,
    Outgoing,
    Received,
    Refused,
    TopicBatch,
    republished,
)

_SUBSCRIBED_MESSAGES = 65_536
"""Kept for a slow reader of a subscription; more are dropped, and it is logged."""

log = get_logger(__name__)


class Bus:
    """One supervised connection and what can be done with it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._ensured: dict[str, Stream] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: BusSettings) -> AsyncIterator[Bus]:
        """Connect in the background, for ever; returns before the connection stands."""
        connection = Connection(settings)
        async with connection.keep_up():
            bus = cls(connection)
            keeping = asyncio.create_task(bus._keep_streams(), name="bus streams")
            try:
                yield bus
            finally:
                keeping.cancel()
                await asyncio.wait((keeping,))

    @property
    def connected(self) -> bool:
        """True if connected now."""
        return self._connection.connected

    @property
    def connection(self) -> int:
        """How many connections there were: it grows with each reconnect."""
        return self._connection.count

    @property
    def server_version(self) -> str:
        """The version of the connected server; empty while not connected."""
        return self._connection.server_version

    async def wait_connected(self, timeout_s: float | None = None) -> None:
        """Return once connected.

        Raises:
            BusUnavailableError: not within `timeout_s`.
        """
        limit_s = float("inf") if timeout_s is None else timeout_s
        await self._connection.wait_up("connect", limit_s)

    async def ensure_streams(self, streams: Sequence[Stream] = STREAMS) -> None:
        """Create what is missing, and bring what is older up to date.

        Idempotent, also when several processes do it.

        From then on they are made anew after every reconnect: a server that stands
        alone forgets streams in memory when it restarts.

        Raises:
            StreamDiffersError: a stream's settings should change and cannot.
        """
        replicas = self._connection.settings.replicas
        await create_streams(self._connection, streams, replicas)
        self._ensured.update({stream.name: stream for stream in streams})

    async def publish(self, message: Outgoing) -> int:
        """Store a message and give its sequence; retried until it is acknowledged.

        Raises:
            PublishRefusedError: `exists`, `stale` or `other`; nothing was stored.
            BusUnavailableError: the retry budget is spent.
        """
        return await publishing.publish(self._connection, message)

    async def publish_many(
        self, messages: Sequence[Outgoing], window_bytes: int = 16 << 20
    ) -> int:
        """Store messages, many in flight; a retried one may come after later ones.

        Gives the highest of their sequences.

        Raises:
            PublishRefusedError: one is refused; others may be stored.
            BusUnavailableError: the retry budget is spent.
        """
        return await publishing.publish_many(self._connection, messages, window_bytes)

    async def publish_batch(self, messages: Sequence[Outgoing]) -> int:
        """Store up to 1,000 messages of one stream, all or none.

        Gives the sequence of the last one.

        Raises:
            PublishRefusedError: nothing was stored; `stale` when a fence is not ours.
        """
        return await publishing.publish_batch(self._connection, messages)

    async def last(self, stream: str, subject: str) -> Received | None:
        """Read the last message of a subject from the leader: own writes are seen."""
        return await jetstream.read_last_message(self._connection, stream, subject)

    async def purge(self, stream: str, subject: str, up_to: int = 0) -> None:
        """Remove the messages of a subject (or wildcard), or those up to a sequence."""
        await jetstream.purge(self._connection, stream, subject, up_to)

    async def subjects(self, stream: str, subjects: str) -> frozenset[str]:
        """Return the subjects with messages that match a wildcard; it matches few."""
        return await jetstream.list_subjects(self._connection, stream, subjects)

    async def usage(self, stream: str) -> StreamUsage:
        """Ask how full a stream is, and what time it is there."""
        return await stream_usage(self._connection, stream)

    async def stream_health(self, stream: Stream) -> StreamHealth:
        """Ask once how a stream is set up, and how its copies are.

        Raises:
            BusError: it is not there, or may not be looked at; nobody answers.
        """
        return await stream_health(self._connection, stream)

    def read(
        self,
        topic: Topic[M],
        *names: str,
        stop: asyncio.Event,
        start: Start | None = None,
        refusals: Refusals | None = None,
        survives_restart: bool = False,
        skips: Skips | None = None,
    ) -> AsyncIterator[TopicBatch[M]]:
        """Read a topic's messages below these names (the cluster first) until `stop`.

        `async for batch in bus.read(DECISIONS, cluster, stop=stop)`: each message is
        decoded and belongs to its subject; what does not is refused: noted in
        `refusals`, and named in the batch. Nothing is lost over reconnects and
        restarts; a message may come twice. A quiet topic gives an empty batch about
        every second. Unless `start` says so, reading begins with what a reader of the
        topic needs to know. The caller must act on `batch.caught_up` (everything that
        existed has come) and, where a topic survives a restart, on `batch.restarted`,
        and handles each message under `refusals.guard`. What `skips` says of a subject
        is asked for each message before anything of it is read; it is not handed over.

        Raises:
            RestartError: the stream was made anew or lost messages, so what was read
                before may be wrong: the process is to start again. Not with
                `survives_restart`.
        """
        return self.read_all(
            (topic,),
            *names,
            stop=stop,
            start=start,
            refusals=refusals,
            survives_restart=survives_restart,
            skips=skips,
        )

    def read_all(
        self,
        topics: Sequence[Topic[Any]],
        *names: str,
        stop: asyncio.Event,
        start: Start | None = None,
        refusals: Refusals | None = None,
        survives_restart: bool = False,
        skips: Skips | None = None,
    ) -> AsyncIterator[TopicBatch[Any]]:
        """Read topics of one stream as `read` does, in the order of the stream."""
        return reader.read(
            self._connection,
            topics,
            names,
            stop,
            start=start,
            refusals=Refusals() if refusals is None else refusals,
            survives_restart=survives_restart,
            skips=skips,
        )

    async def read_existing(
        self,
        topic: Topic[M],
        *names: str,
        stop: asyncio.Event | None = None,
        start: Start | None = None,
        patient: bool = True,
    ) -> AsyncIterator[TopicBatch[M]]:
        """Read what a topic holds now, then end; earlier when `stop` is set.

        Services are `patient`: what cannot be read is tried again for ever.

        Raises:
            BusError: it cannot be read, as who is not patient is told: no such stream,
                not allowed (NotAllowedError), nobody there.
        """
        done = asyncio.Event()
        batches = reader.read(
            self._connection,
            (topic,),
            names,
            done,
            start=start,
            refusals=Refusals(),
            survives_restart=True,
            once=True,
            patient=patient,
        )
        async with aclosing(batches):
            async for batch in batches:
                yield batch
                if batch.caught_up or (stop is not None and stop.is_set()):
                    done.set()

    async def read_last(self, topic: Topic[M], *names: str) -> Incoming[M] | None:
        """Read the last message of one subject from the leader: own writes are seen.

        Raises:
            ContractsError: it cannot be read, or belongs to another subject.
            MessageError: it cannot be unpacked.
        """
        return await reader.read_last(self._connection, topic, names)

    async def read_newest(self, topic: Topic[M], *names: str) -> Incoming[M] | None:
        """Read the last of all messages of a topic below these names, from the leader.

        Raises:
            ContractsError: it cannot be read, or belongs to another subject.
            MessageError: it cannot be unpacked.
        """
        return await reader.read_newest(self._connection, topic, names)

    async def has_any(self, topic: Topic[Any], *names: str) -> bool:
        """True if there is any message on a topic's subjects below these names.

        Raises:
            BusError: the server does not say.
        """
        subjects = topic.subjects_below(*names)
        found = await jetstream.find_next(self._connection, topic.stream, subjects, 1)
        return found is not None

    async def read_last_or_refused(
        self, topic: Topic[M], *names: str, refusals: Refusals
    ) -> Incoming[M] | Refused | None:
        """Read as `read_last` does; what cannot be read is noted, with its sequence."""
        return await reader.read_last_or_refused(
            self._connection, topic, names, refusals
        )

    def follow(
        self,
        stream: str,
        subjects: Sequence[str],
        stop: asyncio.Event,
        *,
        start: Start = "last_per_subject",
    ) -> AsyncIterator[Fetched]:
        """Follow subjects of a stream as bytes, whatever they carry, until `stop`.

        What carries messages of a topic is read by `read`.
        """
        return follow(self._connection, stream, subjects, stop, start)

    async def subscribe(
        self, subject: str, stop: asyncio.Event
    ) -> AsyncIterator[Received]:
        """Subscribe without a stream: `async for m in await bus.subscribe(...)`.

        The subscription stands when this returns. What is published while the
        connection is away is missed.
        """
        queue: asyncio.Queue[Received] = asyncio.Queue(_SUBSCRIBED_MESSAGES)

        refusals = Refusals()

        def receive(delivery: Delivery) -> None:
            if queue.full():
                log.error("message.dropped", subject=delivery.subject)
                return
            with refusals.guard(delivery.subject):
                queue.put_nowait(
                    republished(delivery.subject, delivery.data, delivery.headers)
                )

        subscription = await self._connection.subscribe(subject, receive)
        return _until_stopped(
            stop, queue, lambda: self._connection.unsubscribe(subscription)
        )

    @asynccontextmanager
    async def serve(
        self, subject: str, group: str, take: Callable[[Delivery], None]
    ) -> AsyncIterator[None]:
        """Give each request on a subject to one of a group while the block runs.

        `take` must not wait; whoever answers does so with `reply`.
        """
        subscription = await self._connection.subscribe(subject, take, group)
        try:
            yield
        finally:
            await self._connection.unsubscribe(subscription)

    async def reply(self, request: Delivery, data: bytes) -> None:
        """Answer a request; it is unknown whether the answer arrives.

        Raises:
            BusUnavailableError: there is no connection.
            BusRefusedError: the answer cannot be sent at all.
        """
        await self._connection.publish(request.reply, data)

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes and give their sha256; writes nothing when a young copy exists."""
        return await blobs.put(self._connection, data)

    async def put_new_blobs(self, named: Iterable[tuple[str, bytes]]) -> None:
        """Keep bytes that are hardly there yet, each beside its sha256.

        Nobody asks whether they are: small blobs cost less to write than to look up.
        """
        await blobs.put_new(self._connection, named)

    async def get_blob(self, sha256: str) -> bytes:
        """Read bytes back, digest checked.

        Raises:
            BlobMissingError: they are not there, or not all.
            BlobCorruptedError: they are not what the digest says.
        """
        return await blobs.get(self._connection, sha256)

    async def _keep_streams(self) -> None:
        changed = asyncio.Event()
        self._connection.listeners.add(changed.set)
        while await changed.wait():
            changed.clear()
            if not (self._ensured and self.connected):
                continue
            try:
                await self.ensure_streams(tuple(self._ensured.values()))
            except BusError as error:
                log.error("stream.missed", reason=str(error))  # noqa: TRY400 # the reason is the whole story


async def _until_stopped(
    stop: asyncio.Event,
    queue: asyncio.Queue[Received],
    end: Callable[[], Awaitable[None]],
) -> AsyncIterator[Received]:
    stopping = asyncio.create_task(stop.wait())
    try:
        while not stop.is_set():
            taking = asyncio.create_task(queue.get())
            await asyncio.wait((stopping, taking), return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                taking.cancel()
                return
            yield taking.result()
            while not queue.empty():
                yield queue.get_nowait()
    finally:
        stopping.cancel()
        await end()
