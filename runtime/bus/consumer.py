"""One ephemeral pull consumer: from its creation until anything is wrong with it.

Collects what the server sends and says whether the consumer can still be trusted;
reader.py throws it away and makes the next. Pull, because only pull makes a slow
reader slow the server down instead of losing messages; acknowledgements off.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from runtime import metrics
from runtime.bus.connection import Connection
from runtime.bus.jetstream import (
    NO_CONSUMER,
    ConsumerInfo,
    Nothing,
    call,
)
from runtime.bus.subscription import Delivery, Subscription
from runtime.errors import BusError, BusRefusedError
from runtime.log import get_logger

BATCH = 500
_PULL_BYTES = 16 << 20
_PULL_S = 30
_HEARTBEAT_S = 0.5
_STALLED_S = 5.0
"""What was pending when a pull expired comes by the next one within so long."""
_SILENCE_S = 2.5
"""Without a message or heartbeat for so long, the consumer is taken for dead."""
_UNUSED_S = 60
REQUEST_S = 2.0
_NS = 1_000_000_000

_ACK_TOKENS = 9
"""`$JS.ACK.<stream>.<consumer>.<...>`; longer ones have a domain and an account."""

_FILLED = ("Batch Completed", "MaxBytes")
"""A pull that brought as much as it was allowed to, in the server's words."""

log = get_logger(__name__)


class Position(NamedTuple):
    """The position of a delivered message, as the server reports it."""

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
    """A pull consumer: messages that were pulled and not yet taken.

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
        self._has_expired = False
        """True if the last pull ended with room for more messages."""
        self._stalled_s = math.inf
        """When it is taken for stalled, unless it brings something before."""
        self.name = ""
        """Empty until the server says that it is made."""

    @property
    def usable(self) -> bool:
        """True if there are messages to take, or it makes sense to wait for some."""
        if self._buffer:
            return True
        silent_s = asyncio.get_running_loop().time() - self._heard_s
        return (
            not self._broken
            and self._made_with == self._connection.count
            and self._connection.connected
            and silent_s < _SILENCE_S
        )

    async def create(
        self, subjects: Sequence[str], policy: dict[str, Any], within_s: float
    ) -> None:
        """Create it on the server and ask for the first messages.

        An answer is awaited for `within_s`.

        Raises:
            BusError: it cannot be created now.
        """
        self._subscription = await self._connection.subscribe(
            f"{self._inbox}.*", self._receive_delivery
        )
        name = uuid.uuid4().hex[:16]
        body = {
            "stream_name": self._stream,
            "action": "create",
            "config": {
                "name": name,
                "ack_policy": "none",
                "mem_storage": True,
                "num_replicas": 1,
                "inactive_threshold": _UNUSED_S * _NS,
                "filter_subjects": list(subjects),
                **policy,
            },
        }
        operation = f"CONSUMER.CREATE.{self._stream}.{name}"
        await call(self._connection, operation, body, ConsumerInfo, within_s)
        # Unanswered, it has no name here: the server ends it by itself.
        self.name = name
        await self.pull()

    async def pull(self) -> None:
        """Request a batch, unless the one before is still under way.

        Raises:
            BusError: the server cannot be asked now.
        """
        if self._expected > 0 or self._broken:
            return
        await self._check_consumer()
        if self._broken:
            return
        self._pull += 1
        self._expected = BATCH
        self._has_expired = False
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
        """Return what has arrived, up to the first gap; a gap ends the consumer.

        So does silence about messages that the server says it has for it.
        """
        taken = []
        if self._buffer:
            self._stalled_s = math.inf
        elif asyncio.get_running_loop().time() > self._stalled_s:
            self._broken = True
            metrics.CONSUMERS_STALLED.labels(self._stream).inc()
            log.warning("consumer.stalled", stream=self._stream, consumer=self.name)
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

    async def _check_consumer(self) -> None:
        """Find out whether it owes us messages, if it had time to give them.

        It may be paused, or have forgotten them as its leader changed. While no pull is
        under way, so what it gave has come.
        """
        if not self._has_expired:
            return
        own = await self._find_own()
        if own is None or own.delivered.consumer_seq != self._number:
            self._broken = True  # more was given than came
        elif own.num_pending > 0:
            now_s = asyncio.get_running_loop().time()
            self._stalled_s = min(self._stalled_s, now_s + _STALLED_S)

    async def _find_own(self) -> ConsumerInfo | None:
        """Read how it is; None: it has ended.

        Raises:
            BusError: the server does not say.
        """
        operation = f"CONSUMER.INFO.{self._stream}.{self.name}"
        try:
            return await call(
                self._connection, operation, None, ConsumerInfo, REQUEST_S
            )
        except BusRefusedError as error:
            if error.code == NO_CONSUMER:
                return None
            raise

    def _receive_delivery(self, delivery: Delivery) -> None:
        self._heard_s = asyncio.get_running_loop().time()
        if not delivery.subject.startswith(self._inbox):
            self._buffer.append(delivery)
            self._expected -= 1
            self._wake()
            return
        if delivery.status == "100" or not delivery.subject.endswith(f".{self._pull}"):
            return
        if delivery.status in ("404", "408") or _is_filled(delivery):
            self._has_expired = not _is_filled(delivery)
            self._expected = 0
        else:
            self._broken = True
        self._wake()
