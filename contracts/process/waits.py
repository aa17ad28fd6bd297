"""Waiting for the first of several events, and only so long.

How every periodic task waits: on `stop` and whatever else may happen, never on the
clock alone.
"""

from __future__ import annotations

import asyncio


async def first_of(*events: asyncio.Event, within_s: float | None = None) -> None:
    """Return when one of the events is set, or after so many seconds."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
