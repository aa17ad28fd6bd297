"""What a relay sends to an account, over a connection of that account's own.

nats-server hands a message to all who hear it before it reads the next of the same
connection. So who hears it a thousand times holds up what the relay sends to its own
account, and nothing else: whoever puts something in waits for nothing, and what has no
room is dropped.
"""

from __future__ import annotations

import contextlib
from asyncio import Event
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from runtime.bus.connection import Connection
from runtime.bus.relayed import make_refusal
from runtime.errors import BusError
from runtime.users import answer_subject, news_subject

MAX_BYTES = 16 << 20
"""Answers that wait; who asked asks again."""
MAX_NEWS_BYTES = 1 << 20
"""Where so much waits there is no room for news and refusals, which nobody needs."""
_EACH_BYTES = 512
"""What a message takes beside its body."""


class _Message(NamedTuple):
    subject: str
    data: bytes
    headers: Mapping[str, str] | None


class Outlet:
    """Messages that wait to be sent, in their order."""

    def __init__(self, connection: Connection, account: str) -> None:
        self._connection = connection
        self._account = account
        self._waiting: deque[_Message] = deque()
        self._bytes = 0
        self._filled = Event()

    @property
    def max_bytes(self) -> int:
        """The largest body that a message may have."""
        return self._connection.max_bytes

    def has_room(self) -> bool:
        """True if an answer would be sent."""
        return self._bytes < MAX_BYTES

    def answer(
        self, inbox: str, data: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """Have an answer sent to an inbox of the account; empty: nobody waits."""
        if inbox:
            self._put(answer_subject(self._account, inbox), data, headers, MAX_BYTES)

    def refuse(self, inbox: str, codes: tuple[int, int], words: str) -> None:
        """Say no, as JetStream's API does and as direct gets do.

        Where many wait to be sent no refusal is, so that a flood of them costs little.
        """
        told = {"Status": str(codes[0]), "Description": words}
        subject = answer_subject(self._account, inbox)
        if inbox:
            self._put(subject, make_refusal(codes, words), told, MAX_NEWS_BYTES)

    def tell(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        """Have news sent, which the account hears on a subject."""
        self._put(news_subject(self._account, subject), data, headers, MAX_NEWS_BYTES)

    def _put(
        self,
        subject: str,
        data: bytes,
        headers: Mapping[str, str] | None,
        most_bytes: int,
    ) -> None:
        """Have a message sent, unless so much waits already."""
        if self._bytes < most_bytes:
            self._waiting.append(_Message(subject, data, headers))
            self._bytes += len(data) + _EACH_BYTES
            self._filled.set()

    async def run(self) -> None:
        """Send what comes, until cancelled."""
        while await self._filled.wait():
            self._filled.clear()
            while self._waiting:
                subject, data, headers = self._waiting.popleft()
                self._bytes -= len(data) + _EACH_BYTES
                with contextlib.suppress(BusError):
                    await self._connection.publish(subject, data, headers=headers)
