"""Who sends to an account waits for nothing, however slow its connection is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import cast

from runtime.bus.connection import Connection
from runtime.bus.outlet import MAX_BYTES, MAX_NEWS_BYTES, Outlet
from runtime.bus.relayed import BUSY
from runtime.errors import BusUnavailableError

LOST = "x-lost"


class _Clogged:
    """A connection that takes messages once it is let."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.sent: list[str] = []

    async def publish(
        self, subject: str, _data: bytes, *, headers: Mapping[str, str] | None
    ) -> None:
        await self.free.wait()
        if headers and LOST in headers:
            raise BusUnavailableError(subject, "not connected")
        self.sent.append(subject)


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def _running(outlet: Outlet) -> AsyncIterator[None]:
    running = asyncio.create_task(outlet.run())
    await _settle()
    yield
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_what_has_no_room_is_dropped_and_news_before_answers() -> None:
    clogged = _Clogged()
    outlet = Outlet(cast("Connection", clogged), "VIEWERS")
    outlet.answer("_INBOX.a", b"x" * MAX_NEWS_BYTES)
    outlet.tell("news", b"", {})
    outlet.refuse("_INBOX.b", BUSY, "too many")
    outlet.answer("_INBOX.c", b"x" * MAX_BYTES)
    assert not outlet.has_room()
    outlet.answer("_INBOX.d", b"")
    async with _running(outlet):
        clogged.free.set()
        await _settle()

        assert clogged.sent == ["answer.VIEWERS._INBOX.a", "answer.VIEWERS._INBOX.c"]
        outlet.tell("evt.x", b"", {})
        outlet.refuse("_INBOX.e", BUSY, "too many")
        await _settle()
        assert clogged.sent[2:] == ["news.VIEWERS.evt.x", "answer.VIEWERS._INBOX.e"]


async def test_nobody_is_answered_who_waits_for_no_answer() -> None:
    clogged = _Clogged()
    clogged.free.set()
    outlet = Outlet(cast("Connection", clogged), "VIEWERS")
    outlet.answer("", b"")
    outlet.refuse("", BUSY, "too many")
    async with _running(outlet):
        assert clogged.sent == []


async def test_what_cannot_be_sent_stops_nothing() -> None:
    clogged = _Clogged()
    clogged.free.set()
    outlet = Outlet(cast("Connection", clogged), "VIEWERS")
    outlet.answer("_INBOX.lost", b"", {LOST: "b"})
    outlet.answer("_INBOX.sent", b"")
    async with _running(outlet):
        assert clogged.sent == ["answer.VIEWERS._INBOX.sent"]
