"""Following a stream: every message once the stream has it, over any interruption.

Makes consumers, throws them away when they cannot be trusted and goes on behind the
last message that was handed over, so a gap or a restart costs time and no message.
Decides when a follower is synced. Must not know what messages mean.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal

from runtime.bus.connection import Connection
from runtime.bus.consumer import REQUEST_S, Consumer, Position
from runtime.bus.jetstream import (
    StreamInfo,
    call,
    read_last_message,
    read_stored_time,
)
from runtime.errors import BusError, MessageError
from runtime.log import get_logger
from runtime.waits import first_of
from runtime.wire import Fetched, Received, Refused, unpack

Start = Literal["last_per_subject", "all", "new"] | int
"""Where a follower begins; a number is a stream sequence."""

_IDLE_S = 1.0
_SAME_S = 0.001
"""Two ways to read the time of one message agree to less."""
_SETTLE_S = 0.02
"""A pause before the server is asked whether anything is still to come."""
_LOOKUPS = 64
_REMEMBERED = 8
"""Messages by which a stream is known again after the connection was lost."""

log = get_logger(__name__)


async def follow(
    connection: Connection,
    stream: str,
    subjects: Sequence[str],
    stop: asyncio.Event,
    start: Start,
    *,
    patient: bool = True,
) -> AsyncGenerator[Fetched, None]:
    """Read until `stop` is set; see `Bus.follow`.

    Raises:
        BusError: the server cannot be read from; who is `patient` tries for ever.
    """
    reader = _Reader(connection, stream, subjects, start, patient=patient)
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(lambda _: reader.wake.set())
    connection.listeners.add(reader.wake.set)
    try:
        while not stop.is_set():
            page = await reader.next_page()
            if page is not None:
                yield page
    finally:
        connection.listeners.discard(reader.wake.set)
        stopping.cancel()
        await reader.discard()


class _Reader:
    """One follower's place in its stream."""

    def __init__(
        self,
        connection: Connection,
        stream: str,
        subjects: Sequence[str],
        start: Start,
        *,
        patient: bool,
    ) -> None:
        self._connection = connection
        self._patient = patient
        self._stream = stream
        self._subjects = tuple(subjects)
        self._start = start
        self._consumer: Consumer | None = None
        self._created = ""
        """When the stream was made: another one has other sequences."""
        self._sequence = 0
        """The last message handed over."""
        self._taken: deque[Position] = deque(maxlen=_REMEMBERED)
        """The last messages handed over."""
        self._first_sequence = 0
        self._end_sequence = 0
        """The stream's last when we began."""
        self._unseen: set[str] = set()
        """Subjects that existed when we began and of which nothing came yet."""
        self._synced = False
        self._restarted = False
        self._refused: list[Refused] = []
        self._shown_s = 0.0
        self._complained = False
        self.wake = asyncio.Event()

    async def next_page(self) -> Fetched | None:
        """Wait for messages, at most a second for an empty page."""
        loop = asyncio.get_running_loop()
        if self._consumer is None or not self._consumer.usable:
            await self._renew()
        was_synced = self._synced
        messages = await self._take()
        if not self._synced and not messages:
            await self._settle()
        due_s = self._shown_s + _IDLE_S - loop.time()
        if messages or self._refused or self._synced != was_synced or due_s <= 0:
            self._shown_s = loop.time()
            restarted, self._restarted = self._restarted, False
            refused, self._refused = tuple(self._refused), []
            return Fetched(
                messages=messages,
                refused=refused,
                synced=self._synced,
                restarted=restarted,
            )
        usable = self._consumer is not None and self._consumer.usable
        pause_s = due_s if self._synced or not usable else min(due_s, _SETTLE_S)
        await first_of(self.wake, within_s=pause_s)
        return None

    async def discard(self) -> None:
        """Let the consumer go."""
        if self._consumer is not None:
            await self._consumer.discard()

    async def _take(self) -> tuple[Received, ...]:
        self.wake.clear()
        if self._consumer is None:
            return ()
        messages = []
        for place, delivery in self._consumer.take():
            self._sequence = place.sequence
            self._taken.append(place)
            self._unseen.discard(delivery.subject)
            try:
                messages.append(
                    unpack(
                        delivery.subject,
                        delivery.data,
                        delivery.headers,
                        place.sequence,
                        place.time_s,
                    )
                )
            except MessageError as error:
                self._refused.append(
                    Refused(
                        subject=delivery.subject,
                        reason=str(error),
                        sequence=place.sequence,
                    )
                )
        if messages and not self._unseen:
            self._synced = self._synced or self._sequence >= self._needed_sequence
        with contextlib.suppress(BusError):
            await self._consumer.pull()
        return tuple(messages)

    @property
    def _needed_sequence(self) -> int:
        # Last values come in order and every subject was seen: that is all there is.
        return 0 if self._start == "last_per_subject" else self._end_sequence

    async def _renew(self) -> None:
        """Make a consumer behind the last message, if the server can be reached."""
        await self.discard()
        self._consumer = None
        if not self._patient:
            await self._connection.wait_up("read")
        if not self._connection.connected:
            return
        consumer = Consumer(self._connection, self._stream, self.wake.set)
        try:
            policy = await self._policy()
            await consumer.create(self._subjects, policy)
        except BusError as error:
            await consumer.discard()
            if not self._patient:
                raise
            if not self._complained:
                log.warning("follow.delayed", stream=self._stream, reason=str(error))
            self._complained = True
            return
        self._complained = False
        self._consumer = consumer

    async def _policy(self) -> dict[str, Any]:
        info = await self._info()
        # What memory held is gone after a restart, and sequences begin again.
        forgotten = info.config.get("storage") == "memory"
        same = info.created == self._created and info.state.last_seq >= self._sequence
        same = same and await self._remembers()
        if self._created and same and not (forgotten and self._sequence):
            return _behind(self._sequence) if self._sequence else self._beginning()
        if self._created:
            log.info("follow.restarted", stream=self._stream)
            self._restarted = True
        await self._begin(info)
        return self._beginning()

    async def _remembers(self) -> bool:
        """Whether the stream still has, in its place, what we were given last.

        A server that lost its last messages gives their sequences to others. Removed
        or overwritten messages say nothing, so the newest that is there counts; where
        none of them is left the stream is believed.
        """
        for place in reversed(self._taken):
            time_s = await read_stored_time(
                self._connection, self._stream, place.sequence
            )
            if time_s is not None:
                return abs(time_s - place.time_s) < _SAME_S
        return True

    async def _begin(self, info: StreamInfo) -> None:
        """Note what exists now: only when it has come are we synced."""
        again = bool(self._created)
        end = info.state.last_seq
        unseen: set[str] = set()
        first = self._start if isinstance(self._start, int) else 0
        if self._start == "new":
            first = end + 1
        if again and self._start != "last_per_subject":
            first = 0
        if first <= end:
            for subject in self._subjects:
                unseen |= await self._existing(subject)
        self._created = info.created
        self._sequence = 0
        self._taken.clear()
        self._first_sequence, self._end_sequence = first, end
        self._unseen = unseen
        self._synced = not unseen

    def _beginning(self) -> dict[str, Any]:
        if self._start == "last_per_subject":
            return {"deliver_policy": "last_per_subject"}
        return _behind(self._first_sequence - 1)

    async def _settle(self) -> None:
        """Ask whether what has not come still exists."""
        if self._consumer is None or not self._consumer.usable:
            return
        with contextlib.suppress(BusError):
            info = await self._consumer.info()
            sent = info.delivered.consumer_seq
            if info.num_pending or sent > self._consumer.number:
                return
            for subject in tuple(self._unseen)[:_LOOKUPS]:
                with contextlib.suppress(MessageError):
                    found = await read_last_message(
                        self._connection, self._stream, subject
                    )
                    if found is None or found.sequence < self._first_sequence:
                        self._unseen.discard(subject)
            if self._consumer.quiet:
                self._synced = not self._unseen

    async def _info(self, body: dict[str, Any] | None = None) -> StreamInfo:
        operation = f"STREAM.INFO.{self._stream}"
        return await call(self._connection, operation, body, StreamInfo, REQUEST_S)

    async def _existing(self, wildcard: str) -> set[str]:
        found: set[str] = set()
        while True:
            body = {"subjects_filter": wildcard, "offset": len(found)}
            info = await self._info(body)
            found |= info.state.subjects.keys()
            if len(found) >= info.total or not info.state.subjects:
                return found


def _behind(sequence: int) -> dict[str, Any]:
    return {
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": max(1, sequence + 1),
    }
