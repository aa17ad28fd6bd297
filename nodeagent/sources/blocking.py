"""Calls that may block, in a thread: a driver that hangs stops no heartbeat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from nodeagent.errors import SourceError

T = TypeVar("T")


class BlockingCalls:
    """One thread of one source: one call at a time, each waited for so long.

    A call that takes longer is left alone, and no other begins before it is back.
    """

    def __init__(self, source: str, limit_s: float) -> None:
        self._source = source
        self._limit_s = limit_s
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=source)
        self._lock = asyncio.Lock()
        self._stuck: asyncio.Future[Any] | None = None

    async def run(self, function: Callable[[], T]) -> T:
        """Return what the function returns, or raise what it raises.

        Raises:
            SourceError: it, or an earlier call, is not back in time.
        """
        async with self._lock:
            if self._stuck is not None:
                await asyncio.wait((self._stuck,), timeout=self._limit_s)
                self._check(self._stuck)
                self._stuck = None
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._thread, function)
            done, _ = await asyncio.wait((future,), timeout=self._limit_s)
            if not done:
                self._stuck = future
            self._check(future)
            return future.result()

    def _check(self, future: asyncio.Future[Any]) -> None:
        if not future.done():
            reason = f"the device's driver has not answered for {self._limit_s:g} s"
            raise SourceError(self._source, reason)
