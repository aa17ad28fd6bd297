"""Who sends to an account waits for nothing, however slow its connection is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import cast

from runtime.bus.connection import Connection
from runtime.bus.outlet import MAX_BYTES, MAX_NEWS_BYTES, Outlet
from runtime.errors import BusUnavailableError


class _Clogged:
    """A connection that takes messages once it is let."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.sent: list[str] = []

    async def publish(
        self, subject: str, _data: bytes, *, headers: Mapping[str, str] | None
    ) -> None:
        await self.free.wait()
        if headers is not None:
            raise BusUnavailableError(subject, "not connected")
        self.sent.append(subject)


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_has_no_room_is_dropped_and_news_before_answers() -> None:
    clogged = _Clogged()
    outlet = Outlet(cast("Connection", clogged))
    outlet.put("answer", b"x" * MAX_NEWS_BYTES)
    outlet.put("news", b"", most_bytes=MAX_NEWS_BYTES)
    outlet.put("answer", b"x" * MAX_BYTES)
    assert not outlet.has_room()
    outlet.put("answer", b"")
    running = asyncio.create_task(outlet.run())
    await _settle()
    clogged.free.set()
    await _settle()

    assert clogged.sent == ["answer", "answer"]
    assert outlet.has_room(1)
    outlet.put("news", b"", most_bytes=MAX_NEWS_BYTES)
    await _settle()
    assert clogged.sent[2:] == ["news"]
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_what_cannot_be_sent_stops_nothing() -> None:
    clogged = _Clogged()
    clogged.free.set()
    outlet = Outlet(cast("Connection", clogged))
    outlet.put("lost", b"", {"a": "b"})
    outlet.put("sent", b"")
    running = asyncio.create_task(outlet.run())
    await _settle()

    assert clogged.sent == ["sent"]
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
