"""Waiting for the first of several events, for work unless stopped, for works together.

How every periodic task waits: on `stop` and whatever else may happen, never on the
clock alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def first_of(*events: asyncio.Event, within_s: float | None = None) -> None:
    """Return when one of the events is set, or after so many seconds.

    The caller looks itself which it was. With `stop` alone it is the one way to sleep.
    """
    if len(events) == 1:
        # Needs no tasks, and is what nearly everybody waits for.
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await events[0].wait()
        return
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


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


async def together(work: Iterable[Coroutine[Any, Any, object]]) -> None:
    """Await all; at the first error the rest is cancelled and that error raised.

    `asyncio.TaskGroup` alone wraps errors in groups, which no `except` for one of them
    catches; so a lost connection would end a service that knows how to wait for it.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in work:
                group.create_task(coroutine)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
