"""A stream as those outside of CORE read it: page by page, each asked of a relay.

Has what a consumer has (consumer.py): its follower takes, asks for more, and throws it
away when it cannot be trusted. Needs nothing that the server keeps.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from contracts.pages import PageHead, PageRequest, read_page
from contracts.streams import STREAMS
from contracts.topics import FENCE
from runtime.bus.connection import Connection
from runtime.bus.consumer import Position
from runtime.bus.jetstream import BUSY_STATUS
from runtime.bus.subscription import Delivery, Subscription
from runtime.errors import BusRefusedError
from runtime.users import ANSWER_WITHIN_S
from runtime.wire import seconds

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0
"""Between two questions to a quiet stream."""
_SURE_S = 30.0
"""Its follower looks so often whether the stream is still the same: servers that lost
its end may have stored other messages there, and pages do not tell."""
_REPUBLISHED = {stream.name: stream.republish for stream in STREAMS}


class StreamPages:
    """Messages of a subject from a sequence on, in their order and without gaps."""

    def __init__(
        self, connection: Connection, stream: str, wake: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._wake = wake
        self._made_with = connection.count
        self._made_s = self._now_s()
        self._news: Subscription | None = None
        self._subject = ""
        self._next = 1
        """The sequence from which on messages are still to be asked for."""
        self._buffer: deque[tuple[Position, Delivery]] = deque()
        self._newest: dict[str, tuple[Position, Delivery]] | None = None
        """The last message of each subject so far, until all that exists was read;
        None: every message counts."""
        self._asked: asyncio.Future[Delivery] | None = None
        self._asked_s = 0.0
        self._due_s = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._broken = False

    @property
    def usable(self) -> bool:
        """True if there are messages to take, or it makes sense to wait for some."""
        if self._buffer:
            return True
        now_s = self._now_s()
        is_lost = self._asked is not None and now_s > self._asked_s + ANSWER_WITHIN_S
        is_old = self._newest is None and now_s > self._made_s + _SURE_S
        return (
            not (self._broken or is_lost or is_old)
            and self._made_with == self._connection.count
            and self._connection.connected
        )

    async def create(
        self, subjects: Sequence[str], policy: dict[str, Any], _within_s: float
    ) -> None:
        """Begin to read, and ask for the first page.

        Raises:
            BusError: it cannot be asked for now.
        """
        if len(subjects) != 1:
            operation = f"DIRECT.GET.{self._stream}"
            raise BusRefusedError(operation, "several subjects are read one by one")
        (self._subject,) = subjects
        self._next = policy.get("opt_start_seq", 1)
        if policy["deliver_policy"] == "last_per_subject":
            self._newest = {}
        prefix = _REPUBLISHED.get(self._stream)
        if prefix and not self._subject.startswith(f"{FENCE.entity}."):
            news = f"{prefix}.{self._subject}"
            self._news = await self._connection.subscribe(news, self._hear_news)
        await self.pull()

    async def pull(self) -> None:
        """Ask for a page, unless one is coming or the stream was quiet just now.

        Raises:
            BusError: the relay cannot be asked now.
        """
        if self._asked is not None or self._broken or self._now_s() < self._due_s:
            return
        page = PageRequest(seq=self._next, next_by_subj=self._subject)
        subject = self._connection.api_subject(f"DIRECT.GET.{self._stream}")
        self._asked_s = self._now_s()
        self._asked = await self._connection.send(subject, msgspec.json.encode(page))
        self._asked.add_done_callback(self._take_answer)

    def take(self) -> list[tuple[Position, Delivery]]:
        """Return what has come."""
        taken = [*self._buffer]
        self._buffer.clear()
        return taken

    async def discard(self) -> None:
        """End it."""
        if self._asked is not None:
            self._asked.cancel()
        if self._news is not None:
            await self._connection.unsubscribe(self._news)

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def _hear_news(self, _: Delivery) -> None:
        self._due_s, self._pause_s = 0.0, _FIRST_PAUSE_S
        self._wake()

    def _take_answer(self, asked: asyncio.Future[Delivery]) -> None:
        self._asked = None
        is_refused = asked.cancelled() or asked.exception() is not None
        status = "" if is_refused else asked.result().status
        if status == BUSY_STATUS:
            self._pause()
        elif is_refused or status:
            self._broken = True
        else:
            try:
                self._take_page(*read_page(asked.result().data))
            except ValueError:
                self._broken = True
        self._wake()

    def _take_page(self, page: PageHead, bodies: Sequence[bytes]) -> None:
        """Take a page; a quiet stream is asked again later, and later still."""
        pending = page.pending + len(page.messages)
        for message, body in zip(page.messages, bodies, strict=True):
            pending -= 1
            place = Position(
                sequence=message.sequence,
                number=0,
                time_s=seconds(message.time),
                pending=pending,
            )
            delivery = Delivery(message.subject, "", body, message.headers)
            if self._newest is None:
                self._buffer.append((place, delivery))
            else:
                self._newest.pop(message.subject, None)
                self._newest[message.subject] = place, delivery
            self._next = message.sequence + 1
        if page.messages and page.pending:
            return
        if self._newest is not None:
            self._buffer.extend(self._newest.values())
            self._newest = None
        if page.messages:
            self._pause_s = _FIRST_PAUSE_S
        self._pause()

    def _pause(self) -> None:
        self._due_s = self._now_s() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        asyncio.get_running_loop().call_at(self._due_s, self._wake)
