"""Following a stream: every message once the stream has it, over any interruption.

Makes consumers, throws them away when they cannot be trusted and goes on behind the
last message that was handed over, so a gap or a restart costs time and no message.
Decides when a follower is synced, at a cost that does not grow with the subjects of the
stream. Must not know what messages mean.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Literal

from runtime.bus.connection import Connection
from runtime.bus.consumer import REQUEST_S, Consumer, Position
from runtime.bus.jetstream import (
    StreamInfo,
    find_next,
    read_info,
    read_stored_time,
)
from runtime.bus.pages import StreamPages
from runtime.bus.subscription import Delivery
from runtime.errors import BusError, BusUnavailableError, MessageError
from runtime.log import get_logger
from runtime.waits import first_of
from runtime.wire import Fetched, Received, Refused, unpack

Start = Literal["last_per_subject", "all", "new"] | int
"""Where a follower begins; a number is a stream sequence."""
Skips = Callable[[str], bool]
"""Predicate of subjects whose messages are skipped unread."""

_PATIENCE_S = 60.0
"""An answer is awaited for so long at most, and each time twice as long as before."""
_ONCE_S = 10.0
"""And so long by who asks once."""
_RELAY_S = 3.0
"""A relay that ended runs again within so long."""
_IDLE_S = 1.0
_SAME_S = 0.001
"""Two ways to read the time of one message agree to less."""
_SETTLE_S = 0.02
"""Pause before asking the server whether anything is still to come."""
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
    skips: Skips | None = None,
    patient: bool = True,
) -> AsyncGenerator[Fetched, None]:
    """Read until `stop` is set; see `Bus.follow`.

    Raises:
        BusError: the server cannot be read from; who is `patient` tries for ever.
    """
    reader = _Reader(connection, stream, subjects, start, skips, patient=patient)
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
        skips: Skips | None,
        *,
        patient: bool,
    ) -> None:
        self._connection = connection
        self._patient = patient
        self._begun_s = asyncio.get_running_loop().time()
        self._patience_s = REQUEST_S if patient else _ONCE_S
        """How long an answer is awaited. To make a consumer of many subjects takes the
        server seconds, and who did not wait for it makes another."""
        self._skips = skips
        self._stream = stream
        self._subjects = tuple(subjects)
        self._start = start
        self._consumer: Consumer | StreamPages | None = None
        self._created = ""
        """When the stream was made: another one has other sequences."""
        self._sequence = 0
        """The last message handed over."""
        self._pending = 0
        """Messages that were stored and still to come when it was sent."""
        self._taken: deque[Position] = deque(maxlen=_REMEMBERED)
        """The last messages handed over."""
        self._end_sequence = 0
        """The stream's last when it was asked how far it is."""
        self._missing = 0
        """Messages up to there that were not handed over since it was asked."""
        self._seen: set[str] | None = None
        """Subjects with messages that were handed over; None: not tracked."""
        self._live = 0
        """Subjects in the stream when it was asked."""
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
            await self._renew_consumer()
        was_synced = self._synced
        messages = await self._take_batch()
        if not self._synced and (not messages or self._may_be_synced):
            await self._measure_progress(idle=not messages)
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
                pending=self._pending,
                read_up_to=self._sequence,
            )
        usable = self._consumer is not None and self._consumer.usable
        pause_s = due_s if self._synced or not usable else min(due_s, _SETTLE_S)
        await first_of(self.wake, within_s=pause_s)
        return None

    async def discard(self) -> None:
        """Let the consumer go."""
        if self._consumer is not None:
            await self._consumer.discard()

    async def _take_batch(self) -> tuple[Received, ...]:
        self.wake.clear()
        if self._consumer is None:
            return ()
        messages = []
        for place, delivery in self._consumer.take():
            self._sequence, self._pending = place.sequence, place.pending
            self._taken.append(place)
            self._note_delivery(delivery)
            if self._skips is not None and self._skips(delivery.subject):
                continue
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
        with contextlib.suppress(BusError):
            await self._consumer.pull()
        return tuple(messages)

    def _note_delivery(self, delivery: Delivery) -> None:
        """Count a message towards what we are synced with."""
        if self._synced:
            return
        self._missing -= self._sequence <= self._end_sequence
        if self._seen is not None:
            self._seen.add(delivery.subject)

    @property
    def _may_be_synced(self) -> bool:
        """True if we have read as far as the stream was when asked."""
        if self._seen is not None and len(self._seen) == self._live:
            return True
        return self._sequence >= self._end_sequence

    async def _renew_consumer(self) -> None:
        """Make a consumer behind the last message, if the server can be reached."""
        await self.discard()
        self._consumer = None
        if not self._patient:
            await self._connection.wait_up("read")
        if not self._connection.connected:
            return
        kind = StreamPages if self._connection.settings.is_outside else Consumer
        consumer = kind(self._connection, self._stream, self.wake.set)
        try:
            policy = await self._start_policy()
            await consumer.create(self._subjects, policy, self._patience_s)
            self._patience_s = min(self._patience_s, REQUEST_S)
        except BusError as error:
            await consumer.discard()
            if not self._patient and not self._may_wait(error):
                raise
            self._patience_s = min(2 * self._patience_s, _PATIENCE_S)
            if not self._complained:
                log.warning("follow.delayed", stream=self._stream, reason=str(error))
            self._complained = True
            return
        self._complained = False
        self._consumer = consumer

    def _may_wait(self, error: BusError) -> bool:
        """True if who asks once asks again: a relay may be about to start."""
        is_early = asyncio.get_running_loop().time() < self._begun_s + _RELAY_S
        return isinstance(error, BusUnavailableError) and is_early

    async def _start_policy(self) -> dict[str, Any]:
        info = await self._info()
        # What memory held is gone after a restart, and sequences begin again.
        forgotten = info.config.get("storage") == "memory"
        same = info.created == self._created and info.state.last_seq >= self._sequence
        same = same and await self._has_last_message()
        if self._created and same and not (forgotten and self._sequence):
            return self._beginning(info)
        if self._created:
            log.info("follow.restarted", stream=self._stream)
            self._restarted = True
        self._begin_reading(info)
        return self._beginning(info)

    async def _has_last_message(self) -> bool:
        """True if the stream still has our last message in its place.

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

    def _begin_reading(self, info: StreamInfo) -> None:
        """Stand before what exists now: only when it has come are we synced."""
        end = info.state.last_seq
        first = self._start if isinstance(self._start, int) else 1
        if self._start == "new":
            first = end + 1
        if self._created and self._start != "last_per_subject":
            first = 1
        self._created = info.created
        self._sequence, self._pending = first - 1, 0
        self._taken.clear()
        self._end_sequence, self._missing = end, end - self._sequence
        self._live = info.state.num_subjects
        self._seen = set() if _keeps_subjects(info.config) else None
        self._synced = self._missing <= 0

    def _beginning(self, info: StreamInfo) -> dict[str, Any]:
        """Choose what a consumer begins with.

        To find the last of each subject costs the server ten times what it costs to
        begin at a sequence, so it is not asked where it keeps nothing else.
        """
        keeps_others = info.config.get("max_msgs_per_subject") != 1
        if self._start == "last_per_subject" and not self._sequence and keeps_others:
            return {"deliver_policy": "last_per_subject"}
        return {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": max(1, self._sequence + 1),
        }

    async def _measure_progress(self, *, idle: bool) -> None:
        """Find out whether everything has come that existed when we began.

        The stream hands over what lives, in order. A message that was still to come may
        be overwritten or removed meanwhile, and its subject's next one lies further on.
        So every subject was seen if, at any moment after we began, one of these held:

        - nothing of ours lived behind what was handed over before that moment;
        - from there to the stream's end at that moment, every message was handed over;
        - as many subjects live in the stream as were handed over and live. This ends
          the reading where all is overwritten faster than it can be read.
        """
        if not self._created:
            return  # nobody could tell yet what exists
        if self._missing > 0:
            if self._consumer is None or not self._consumer.usable:
                return
            before, seen = self._sequence, len(self._seen or ())
            try:
                state = (await self._info()).state
                self._end_sequence = state.last_seq
                self._missing = state.last_seq - before
                self._live = state.num_subjects
                every = self._missing <= 0 or seen == self._live
                # What lies behind may all be of other subjects than ours.
                if not every and (not idle or await self._finds_behind(before)):
                    return
            except BusError:
                return
        self._synced, self._seen = True, None

    async def _finds_behind(self, sequence: int) -> bool:
        """True if the stream has a message for us after this sequence."""
        for subject in self._subjects:
            if await find_next(self._connection, self._stream, subject, sequence + 1):
                return True
        return False

    async def _info(self) -> StreamInfo:
        return await read_info(self._connection, self._stream, self._patience_s)


def _keeps_subjects(config: Mapping[str, Any]) -> bool:
    """True if messages of a stream do not expire.

    Of streams that keep only the last message of each subject: what they hold is bound
    by what lives.
    """
    return (
        config.get("max_msgs_per_subject") == 1
        and config.get("discard") == "new"
        and not config.get("discard_new_per_subject")
        and not config.get("max_age")
    )
