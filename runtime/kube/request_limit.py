"""Requests wait here until a client limit lets them go."""

from __future__ import annotations

import asyncio
from time import monotonic

from runtime.kube.token_bucket import TokenBucket
from runtime.waits import first_of


class RequestLimit:
    """The limit of one client; who waits for it is in the order in which they came."""

    def __init__(self, qps: float = 0.0, burst: int = 1) -> None:
        self._bucket = TokenBucket(qps, burst)
        self._lifted = asyncio.Event()

    async def wait_turn(self) -> float:
        """Wait until one more request may go; returns how many seconds that took."""
        if self._lifted.is_set():
            return 0.0
        wait_s = self._bucket.take(monotonic())
        if wait_s:
            await first_of(self._lifted, within_s=wait_s)
        return wait_s

    def lift(self) -> None:
        """Let all who wait go at once, and whoever comes until `restore`."""
        self._lifted.set()

    def restore(self) -> None:
        """Limit requests again."""
        self._lifted.clear()
