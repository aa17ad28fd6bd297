"""Waiting for the first of several events, and only so long.

How every periodic task waits: on `stop` and whatever else may happen, never on the
clock alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def unless(stop: asyncio.Event, work: Awaitable[T]) -> T | None:
    """Do some work; once `stop` is set it is cancelled, and None comes back."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        stopping.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))


async def first_of(*events: asyncio.Event, within_s: float | None = None) -> None:
    """Return when one of the events is set, or after so many seconds."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
