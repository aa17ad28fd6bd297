"""One ephemeral pull consumer: from its creation until anything is wrong with it.

Collects what the server sends and says whether the consumer can still be trusted;
reader.py throws it away and makes the next. Pull, because only pull makes a slow
reader slow the server down instead of losing messages; acknowledgements off.

One whose name others may use is looked at before a pull: they could have changed it, or
have it by now.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from runtime import metrics
from runtime.bus.connection import Connection
from runtime.bus.jetstream import (
    CONSUMER_EXISTS,
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
_UNUSED_NAMED_S = 10
"""Names are few: one that was left behind by a lost connection is soon free."""
_SURE_S = 8.0
"""A name that was ours so short a time ago still is; less than `_UNUSED_NAMED_S`."""
_MAKER = "moorings.dev/maker"
"""In a consumer's metadata: its maker, so that nobody reads from another's."""
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


def _list_changed_settings(made: ConsumerInfo, now: ConsumerInfo) -> tuple[str, ...]:
    """Name the settings that were changed and that messages depend on.

    Not the server's own labels, nor a pause: it delays messages and loses none.
    """
    return tuple(
        field
        for field in sorted({*made.config, *now.config} - {"metadata", "pause_until"})
        if made.config.get(field) != now.config.get(field)
    )


def _filter(subjects: Sequence[str]) -> dict[str, Any]:
    """Return what limits a consumer to subjects.

    A single one is also part of the request's subject, and only such requests are open
    to users outside of CORE: nats-server takes time that grows with the square of
    `filter_subjects`, and answers nobody meanwhile.
    """
    if len(subjects) == 1:
        return {"filter_subject": subjects[0]}
    return {"filter_subjects": list(subjects)}


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
        self._maker = uuid.uuid4().hex[:16]
        self._made: ConsumerInfo | None = None
        self._seen_s = 0.0
        """When it was last asked whether it is ours and as we made it."""
        self._last = 0
        """The sequence of what was taken last."""
        self._has_expired = False
        """True if the last pull ended with room for more messages."""
        self._stalled_s = math.inf
        """When it is taken for stalled, unless it brings something before."""
        self.name = ""
        """Empty until the server says that it is made."""
        self.is_changed = False
        """True if others changed it: messages since `sure` may be incomplete."""
        self.sure = 0
        """The sequence up to which it gave what it was made for."""

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

        An answer is awaited for `within_s`, for each name that is tried.

        Raises:
            BusError: it cannot be created now.
        """
        self._subscription = await self._connection.subscribe(
            f"{self._inbox}.*", self._receive_delivery
        )
        settings = self._connection.settings
        names = settings.consumer_names
        unused_s = _UNUSED_NAMED_S if names else _UNUSED_S
        config = {
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": unused_s * _NS,
            **_filter(subjects),
            "metadata": {_MAKER: self._maker},
            **policy,
        }
        self.sure = self._last = policy.get("opt_start_seq", 1) - 1
        # In no order, so that those who start at once seldom try the same.
        for name in random.sample(names, len(names)) or [self._maker]:
            if await self._try_name(name, config, within_s):
                await self.pull()
                return
        raise BusRefusedError(
            f"CONSUMER.CREATE.{self._stream}",
            f"all {len(names)} consumers of {self._stream} for {settings.user} are "
            "in use",
            CONSUMER_EXISTS,
        )

    async def _try_name(
        self, name: str, config: dict[str, Any], within_s: float
    ) -> bool:
        """Create it with a name, unless that is in use."""
        seen_s = asyncio.get_running_loop().time()
        body = {
            "stream_name": self._stream,
            "config": {**config, "name": name},
            "action": "create",
        }
        operation = f"CONSUMER.CREATE.{self._stream}.{name}"
        if filter_subject := config.get("filter_subject"):
            operation = f"{operation}.{filter_subject}"
        try:
            made = await call(self._connection, operation, body, ConsumerInfo, within_s)
        except BusRefusedError as error:
            if error.code != CONSUMER_EXISTS:
                raise
            return False
        # Unanswered, it has no name here: the server ends it by itself.
        self.name, self._made, self._seen_s = name, made, seen_s
        return True

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
            self._last = position.sequence
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
                if not self._is_shared or await self._find_own() is not None:
                    await call(self._connection, operation, None, Nothing, REQUEST_S)

    @property
    def _is_shared(self) -> bool:
        """True if others may change or recreate it by its name."""
        return self.name != self._maker

    async def _check_consumer(self) -> None:
        """Find out whether it is ours and as we made it, if that was long ago.

        And whether it owes us messages, if it had time to give them: it may be paused,
        or have forgotten them as its leader changed. While no pull is under way, so
        what it gave has come.
        """
        now_s = asyncio.get_running_loop().time()
        is_sure = not self._is_shared or now_s - self._seen_s < _SURE_S
        if is_sure and not self._has_expired:
            return
        own = await self._find_own()
        if self._has_expired and own is not None and own.num_pending > 0:
            self._stalled_s = min(self._stalled_s, now_s + _STALLED_S)
        # Where more was given than we have, somebody else pulled from it.
        if own is None or self.is_changed or own.delivered.consumer_seq != self._number:
            self._broken = True
        else:
            self._seen_s, self.sure = now_s, self._last

    async def _find_own(self) -> ConsumerInfo | None:
        """Read how it is, and note whether it was changed.

        None: it has ended, and its name may be another's.

        Raises:
            BusError: the server does not say.
        """
        operation = f"CONSUMER.INFO.{self._stream}.{self.name}"
        try:
            info = await call(
                self._connection, operation, None, ConsumerInfo, REQUEST_S
            )
        except BusRefusedError as error:
            if error.code == NO_CONSUMER:
                return None
            raise
        if self._made is None or info.created != self._made.created:
            return None
        fields = _list_changed_settings(self._made, info)
        if fields and not self.is_changed:
            self.is_changed = True
            log.warning(
                "consumer.changed",
                stream=self._stream,
                consumer=self.name,
                fields=fields,
            )
        return info

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
