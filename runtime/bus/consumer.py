"""One ephemeral pull consumer: from its creation until anything is wrong with it.

Collects what the server sends and says whether the consumer can still be trusted;
reader.py throws it away and makes the next. Pull, because only pull makes a slow
reader slow the server down instead of losing messages; acknowledgements off.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from runtime.bus.connection import Connection, Delivery, Subscription
from runtime.bus.jetstream import CONSUMER_EXISTS, Nothing, call
from runtime.errors import BusError, BusRefusedError

BATCH = 500
_PULL_BYTES = 16 << 20
_PULL_S = 30
_HEARTBEAT_S = 0.5
_SILENCE_S = 2.5
"""Without a message or heartbeat for so long, the consumer is taken for dead."""
_UNUSED_S = 60
_UNUSED_NAMED_S = 10
"""Names are few: one that was left behind by a lost connection is soon free."""
_TRIED = 16
"""Names that are tried at a time, of those that a user has."""
_MAKER = "moorings.dev/maker"
"""In a consumer's metadata: who made it, so that nobody is given another's."""
REQUEST_S = 2.0
_NS = 1_000_000_000

_ACK_TOKENS = 9
"""`$JS.ACK.<stream>.<consumer>.<...>`; longer ones have a domain and an account."""

_FILLED = ("Batch Completed", "MaxBytes")
"""A pull that brought as much as it was allowed to, in the server's words."""


class Position(NamedTuple):
    """What the server says about a delivered message."""

    sequence: int
    number: int
    """Counts the consumer's deliveries from 1, without gaps."""
    time_s: float
    pending: int = 0
    """Messages that the consumer was still to be sent."""


def read_position(reply: str) -> Position:
    """Read a message's position from its reply subject, in the old or new form."""
    tokens = reply.split(".")
    first = 5 if len(tokens) == _ACK_TOKENS else 7
    sequence, number, time_ns, pending = map(int, tokens[first : first + 4])
    return Position(sequence, number, time_ns / _NS, pending)


def _is_filled(status: Delivery) -> bool:
    description = status.headers.get("Description", "")
    return status.status == "409" and any(text in description for text in _FILLED)


class Consumer:
    """What was pulled and not yet taken, and whether more will come.

    Call `create` once, then `take` and `pull` again and again while it is `usable`;
    `discard` it afterwards, whatever happened.
    """

    def __init__(
        self, connection: Connection, stream: str, wake: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._wake = wake
        self._inbox = connection.new_inbox()
        self._subscription: Subscription | None = None
        self._buffer: deque[Delivery] = deque()
        self._made_with = connection.count
        self._pull = 0
        self._expected = 0
        """Messages that the current pull may still bring."""
        self._number = 0
        self._heard_s = 0.0
        self._broken = False
        self._maker = uuid.uuid4().hex[:16]
        self.name = ""
        """Empty while it is not on the server."""

    @property
    def usable(self) -> bool:
        """Whether something is there to take, or nothing speaks against waiting."""
        if self._buffer:
            return True
        silent_s = asyncio.get_running_loop().time() - self._heard_s
        return (
            not self._broken
            and self._made_with == self._connection.count
            and self._connection.connected
            and silent_s < _SILENCE_S
        )

    async def create(self, subjects: Sequence[str], policy: dict[str, Any]) -> None:
        """Create it on the server and ask for the first messages.

        Raises:
            BusError: it cannot be created now.
        """
        self._subscription = await self._connection.subscribe(
            f"{self._inbox}.*", self._receive
        )
        names = self._connection.settings.consumer_names
        unused_s = _UNUSED_NAMED_S if names else _UNUSED_S
        config = {
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": unused_s * _NS,
            "filter_subjects": list(subjects),
            "metadata": {_MAKER: self._maker},
            **policy,
        }
        tried = random.sample(names, min(_TRIED, len(names))) or [self._maker]
        while not await self._made(tried.pop(), config, is_last=not tried):
            pass
        await self.pull()

    async def _made(self, name: str, config: dict[str, Any], *, is_last: bool) -> bool:
        """Create it with a name, unless that is in use and another can be tried."""
        wanted = {**config, "name": name}
        self.name = name
        try:
            await call(
                self._connection,
                f"CONSUMER.CREATE.{self._stream}.{name}",
                {"stream_name": self._stream, "config": wanted, "action": "create"},
                Nothing,
                REQUEST_S,
            )
        except BusRefusedError as error:
            self.name = ""  # whoever made it uses it
            if error.code != CONSUMER_EXISTS or is_last:
                raise
            return False
        return True

    async def pull(self) -> None:
        """Request a batch, unless the one before is still under way."""
        if self._expected > 0 or self._broken:
            return
        self._pull += 1
        self._expected = BATCH
        self._heard_s = asyncio.get_running_loop().time()
        request = {
            "batch": BATCH,
            "max_bytes": _PULL_BYTES,
            "expires": _PULL_S * _NS,
            "idle_heartbeat": int(_HEARTBEAT_S * _NS),
        }
        await self._connection.publish(
            self._connection.api_subject(
                f"CONSUMER.MSG.NEXT.{self._stream}.{self.name}"
            ),
            msgspec.json.encode(request),
            reply=f"{self._inbox}.{self._pull}",
        )

    def take(self) -> list[tuple[Position, Delivery]]:
        """Return what has arrived, up to the first gap; a gap ends the consumer."""
        taken = []
        while self._buffer:
            delivery = self._buffer.popleft()
            position = read_position(delivery.reply)
            if position.number != self._number + 1:
                self._broken = True
                self._buffer.clear()
                break
            self._number += 1
            taken.append((position, delivery))
        return taken

    async def discard(self) -> None:
        """End it here, and on the server if that can be reached."""
        if self._subscription is not None:
            await self._connection.unsubscribe(self._subscription)
        is_same = self._connection.count == self._made_with
        if self.name and is_same and self._connection.connected:
            operation = f"CONSUMER.DELETE.{self._stream}.{self.name}"
            with contextlib.suppress(BusError):
                await call(self._connection, operation, None, Nothing, REQUEST_S)

    def _receive(self, delivery: Delivery) -> None:
        self._heard_s = asyncio.get_running_loop().time()
        if not delivery.subject.startswith(self._inbox):
            self._buffer.append(delivery)
            self._expected -= 1
            self._wake()
            return
        if delivery.status == "100" or not delivery.subject.endswith(f".{self._pull}"):
            return
        if delivery.status in ("404", "408") or _is_filled(delivery):
            self._expected = 0
        else:
            self._broken = True
        self._wake()
