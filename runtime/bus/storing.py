"""Messages of outsiders, which a relay stores for them.

A stream acknowledges to the reply of who publishes, and hands that to all who hear it
before it stores more. So what outsiders publish comes here, goes on into its stream
with an inbox of the relay as its reply, and is acknowledged by an outlet. Many are in
flight, those of a connection in their order. Each kind of message has a connection of
its own, so that it waits neither for who reads nor for a flood of another kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import NamedTuple

from msgspec import structs

from contracts.streams import STREAMS
from runtime.bus.connection import Connection
from runtime.bus.outlet import Outlet
from runtime.bus.permissions import STORED
from runtime.bus.relayed import (
    BUSY,
    INVALID,
    FairQueue,
    Request,
    Room,
    read_request,
)
from runtime.bus.subscription import Delivery
from runtime.errors import BusRefusedError, BusUnavailableError
from runtime.tracing import TRACEPARENT
from runtime.users import put_prefix
from runtime.waits import together, unless
from runtime.wire import (
    ENCODING,
    EXPECTED_LAST_SUBJECT_SEQUENCE,
    MESSAGE_ID,
    OVERSIZED,
    BusSettings,
)

_AT_ONCE = 256
"""Messages in flight to a stream."""
_BYTES_AT_ONCE = 16 << 20
"""Of them, where the last may go beyond."""
_ANSWER_S = 5.0
_UNREAD_S = 0.5
"""For so long nothing is read of whoever has no room."""
_ROOM = Room(late_s=4.0)
"""Who publishes asks again after 5 s, and may then say something newer."""
_GROUP = "relays"
_PASSED_ON = frozenset({ENCODING, EXPECTED_LAST_SUBJECT_SEQUENCE, TRACEPARENT})
_OF_EVENTS = "ce-"
_OF_SERVERS = "Nats-"
_DROPPED = frozenset({MESSAGE_ID})
"""A stream knows ids by whoever sent them: with another's a message would be lost."""
_SUBJECT = re.compile(r"[A-Za-z0-9=_-]+(\.[A-Za-z0-9=_-]+)*", re.ASCII)
"""Tokens as `contracts.tokens.token` makes them."""


class _Flow:
    """Messages for a stream: those that wait, and how much of them is in flight."""

    def __init__(self) -> None:
        self.queue = FairQueue(_ROOM)
        self.ready = asyncio.Event()
        """Set when a message came, or an acknowledgement."""
        self.count = 0
        self.bytes = 0

    def has_room(self) -> bool:
        """True if more may be in flight."""
        return self.count < _AT_ONCE and self.bytes < _BYTES_AT_ONCE

    def note(self, count: int, size: int) -> None:
        """Note what was sent, or (negative) what is in flight no more."""
        self.count += count
        self.bytes += size
        self.ready.set()


class _Sent(NamedTuple):
    """A message in flight."""

    flow: _Flow
    bytes: int
    outlet: Outlet
    reply: str
    sent_s: float


class Storing:
    """Takes what outsiders publish, and stores it."""

    def __init__(self, settings: BusSettings) -> None:
        self._settings = structs.replace(settings, name=f"{settings.name}-puts")
        self._connection = Connection(self._settings)
        self._connection.listeners.add(self._forget_lost)
        self._inbox = self._connection.new_inbox()
        self._outlets: dict[tuple[str, str], Outlet] = {}
        """By account and kind of message."""
        self._flows = {stream.name: _Flow() for stream in STREAMS}
        self._sent: dict[str, _Sent] = {}
        """By the last token of the reply, in the order of sending."""
        self._count = 0
        self._flooded: set[bytes] = set()
        """Beginnings of subjects of which there is no room for more, for a moment."""

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Take what users of all accounts publish, for the block."""
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._connection.keep_up())
            await self._connection.subscribe(f"{self._inbox}.*", self._receive_answer)
            for account, entity in STORED:
                await stack.enter_async_context(self._listening_to(account, entity))
            yield

    @contextlib.asynccontextmanager
    async def _listening_to(self, account: str, entity: str) -> AsyncIterator[None]:
        """Take messages of a kind, so that a flood of others holds none of them up."""
        name = f"{self._settings.name}-{account.lower()}-{entity}"
        own = structs.replace(self._settings, name=name)
        connection = Connection(own, self._is_flooded)
        self._outlets[account, entity] = Outlet(connection, account)
        take = partial(self._take_delivery, account)
        async with connection.keep_up():
            subject = f"{put_prefix(account)}.{entity}.>"
            await connection.subscribe(subject, take, _GROUP)
            yield

    async def run(self, stop: asyncio.Event) -> None:
        """Store what comes until `stop` is set."""
        flows = {self._flows[stream] for stream in STORED.values()}
        works = [*map(self._work, flows), self._forget_late(), self._look_again()]
        works += [outlet.run() for outlet in self._outlets.values()]
        await unless(stop, together(works))

    def _take_delivery(self, account: str, delivery: Delivery) -> None:
        headers = choose_headers(delivery.headers)
        subject = delivery.subject.removeprefix(f"{put_prefix(account)}.")
        now_s = asyncio.get_running_loop().time()
        request = read_request(account, subject, delivery, now_s, headers)
        kind = _kind_of(request)
        outlet, flow = self._outlets[kind], self._flows[STORED[kind]]
        if not is_of_names(subject):
            words = "its subject has a token that is no name"
            outlet.refuse(request.reply, INVALID, words)
        elif headers is None:
            outlet.refuse(request.reply, INVALID, "its headers are none of ours")
        elif flow.queue.put(request):
            flow.ready.set()
        else:
            outlet.refuse(request.reply, BUSY, "too many messages wait to be stored")
            self._flooded.add(_owner_of(delivery.subject.encode()))

    def _is_flooded(self, subject: bytes) -> bool:
        return bool(self._flooded) and _owner_of(subject) in self._flooded

    async def _look_again(self) -> None:
        """Read again of all, so that who floods no more is heard."""
        while True:
            await asyncio.sleep(_UNREAD_S)
            self._flooded.clear()

    async def _work(self, flow: _Flow) -> None:
        loop = asyncio.get_running_loop()
        while await flow.ready.wait():
            while flow.has_room() and (request := flow.queue.take(loop.time())):
                await self._send(flow, request)
            flow.ready.clear()

    async def _send(self, flow: _Flow, request: Request) -> None:
        self._count += 1
        token, size = f"{self._count}", len(request.data)
        now_s = asyncio.get_running_loop().time()
        outlet = self._outlets[_kind_of(request)]
        flow.note(1, size)
        self._sent[token] = _Sent(flow, size, outlet, request.reply, now_s)
        try:
            await self._connection.publish(
                request.operation,
                request.data,
                reply=f"{self._inbox}.{token}",
                headers=request.headers,
            )
        except BusRefusedError as error:
            self._end(token)
            outlet.refuse(request.reply, INVALID, error.reason)
        except BusUnavailableError:
            self._end(token)  # and nothing is said: it may be stored

    def _end(self, token: str) -> _Sent | None:
        """End the wait for an acknowledgement."""
        sent = self._sent.pop(token, None)
        if sent is not None:
            sent.flow.note(-1, -sent.bytes)
        return sent

    def _receive_answer(self, delivery: Delivery) -> None:
        sent = self._end(delivery.subject.rpartition(".")[2])
        if sent is None:
            return
        if delivery.data:
            sent.outlet.answer(sent.reply, delivery.data)
        else:
            words = "there is no stream that stores this"
            sent.outlet.refuse(sent.reply, BUSY, words)

    def _forget_lost(self) -> None:
        """End the wait for answers to a connection that is gone."""
        if not self._connection.connected:
            for token in tuple(self._sent):
                self._end(token)

    async def _forget_late(self) -> None:
        """End the wait for what is not acknowledged: who sent it sends it again."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0)
            for token, sent in tuple(self._sent.items()):
                if loop.time() - sent.sent_s < _ANSWER_S:
                    break
                self._end(token)


def _owner_of(subject: bytes) -> bytes:
    """Return the beginning of a subject, up to the node or namespace."""
    return b".".join(subject.split(b".", 6)[:6])


def _kind_of(request: Request) -> tuple[str, str]:
    """Return the account that published a message, and the entity of its subject."""
    return request.account, request.operation.partition(".")[0]


def is_of_names(subject: str) -> bool:
    """True if each token of a subject may be an escaped name."""
    return _SUBJECT.fullmatch(subject) is not None


def choose_headers(headers: Mapping[str, str]) -> dict[str, str] | None:
    """Choose the headers that are passed on; None: there are some that may not be.

    Those of JetStream would wipe what others said, or store it later.
    """
    if OVERSIZED in headers:
        return None
    chosen = {}
    for name, text in headers.items():
        if name in _PASSED_ON or name.startswith(_OF_EVENTS):
            chosen[name] = text
        elif name.startswith(_OF_SERVERS) and name not in _DROPPED:
            return None
    return chosen
