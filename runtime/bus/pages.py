"""A stream as those outside of CORE read it: page by page, each asked of a relay.

Has what a consumer has (consumer.py): its follower takes, asks for more, and throws it
away when it cannot be trusted. Needs nothing that the server keeps.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from contracts.streams import STREAMS
from contracts.topics import FENCE
from runtime.bus.connection import Connection
from runtime.bus.consumer import Position
from runtime.bus.subscription import Delivery, Subscription
from runtime.errors import BusRefusedError
from runtime.users import ACCOUNTS, page_subject, role_of
from runtime.wire import seconds

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0
"""Between two questions to a quiet stream."""
_LOST_S = 10.0
"""A page that took so long will not come."""
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
        self._name = uuid.uuid4().hex[:22]
        self._made_with = connection.count
        self._made_s = self._now_s()
        self._subscriptions: list[Subscription] = []
        self._subject = ""
        self._next = 1
        """The sequence from which on messages are still to be asked for."""
        self._previous = 0
        """The last message of the page that is coming."""
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
        is_lost = self._asked is not None and now_s > self._asked_s + _LOST_S
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
        account = ACCOUNTS[role_of(self._connection.settings.user)]
        heard = page_subject(account, self._name)
        await self._subscribe(heard, self._receive_delivery)
        prefix = _REPUBLISHED.get(self._stream)
        if prefix and not self._subject.startswith(f"{FENCE.entity}."):
            await self._subscribe(f"{prefix}.{self._subject}", self._hear_news)
        await self.pull()

    async def pull(self) -> None:
        """Ask for a page, unless one is coming or the stream was quiet just now.

        Raises:
            BusError: the relay cannot be asked now.
        """
        if self._asked is not None or self._broken or self._now_s() < self._due_s:
            return
        self._previous = 0
        page = {"seq": self._next, "next_by_subj": self._subject, "to": self._name}
        subject = self._connection.api_subject(f"DIRECT.GET.{self._stream}")
        self._asked_s = self._now_s()
        self._asked = await self._connection.send(subject, msgspec.json.encode(page))
        self._asked.add_done_callback(self._note_answer)

    def take(self) -> list[tuple[Position, Delivery]]:
        """Return what has come."""
        taken = [*self._buffer]
        self._buffer.clear()
        return taken

    async def discard(self) -> None:
        """End it."""
        if self._asked is not None:
            self._asked.cancel()
        for subscription in self._subscriptions:
            await self._connection.unsubscribe(subscription)

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def _subscribe(
        self, subject: str, handler: Callable[[Delivery], None]
    ) -> None:
        self._subscriptions.append(await self._connection.subscribe(subject, handler))

    def _note_answer(self, answer: asyncio.Future[Delivery]) -> None:
        """Take the word that a page was sent, before it comes or after; or why not."""
        is_refused = answer.cancelled() or answer.exception() is not None
        if is_refused or answer.result().status:
            self._broken = True
        self._wake()

    def _hear_news(self, _: Delivery) -> None:
        self._due_s, self._pause_s = 0.0, _FIRST_PAUSE_S
        self._wake()

    def _receive_delivery(self, delivery: Delivery) -> None:
        if "Nats-Sequence" not in delivery.headers:
            self._end_page(delivery)
        elif self._asked is not None and not self._broken:
            self._take_delivery(delivery)
        self._wake()

    def _take_delivery(self, delivery: Delivery) -> None:
        try:
            subject = delivery.headers["Nats-Subject"]
            sequence = int(delivery.headers["Nats-Sequence"])
            time_s = seconds(delivery.headers["Nats-Time-Stamp"])
            before = int(delivery.headers["Nats-Last-Sequence"])
            pending = int(delivery.headers["Nats-Num-Pending"])
        except (KeyError, ValueError):
            self._broken = True
            return
        if before != self._previous or sequence < self._next:
            self._broken = True
            return
        self._previous, self._next = sequence, sequence + 1
        place = Position(sequence=sequence, number=0, time_s=time_s, pending=pending)
        message = (place, delivery._replace(subject=subject))
        if self._newest is None:
            self._buffer.append(message)
        else:
            self._newest.pop(subject, None)
            self._newest[subject] = message

    def _end_page(self, delivery: Delivery) -> None:
        """End a page: whole if its last message came.

        A quiet stream is asked again later, and later still.
        """
        if self._asked is None:
            return
        self._asked = None
        last = int(delivery.headers.get("Nats-Last-Sequence") or 0)
        if delivery.status not in ("204", "404") or last != self._previous:
            self._broken = True
        elif self._previous == 0 or delivery.headers.get("Nats-Num-Pending") == "0":
            if self._newest is not None:
                self._buffer.extend(self._newest.values())
                self._newest = None
            if self._previous:
                self._pause_s = _FIRST_PAUSE_S
            self._due_s = self._now_s() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            asyncio.get_running_loop().call_at(self._due_s, self._wake)
