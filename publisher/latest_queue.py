"""A queue of the newest value of each key, whose keys are worked on one at a time.

Whoever hears of something puts it under the key of what it is about: a gang's decision,
say, or a group of pods that changed. Any number of workers take. A key that was taken
is busy until its worker calls `done`; nobody else is handed that key meanwhile, so work
on one key is sequential, while different keys are worked on side by side.

Two values of one key never wait at once: a value that comes while an older one waits
replaces it, and one that comes while its key is busy waits until that is done. So the
queue is bounded by the number of keys, and a worker never does what is already
outdated. A key that waits keeps its turn whatever is put for it.

A key needs no end of its own: once `done` was called and nothing is put again, the
queue has forgotten it. `close` ends the queue: every `take` returns None from then on,
and the workers return; what still waits is found again at the next start.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LatestQueue(Generic[K, V]):
    """Values by key, oldest key first."""

    def __init__(self) -> None:
        self._waiting: dict[K, V] = {}
        self._busy: set[K] = set()
        self._changed = asyncio.Condition()
        self._closed = False

    async def put(self, key: K, value: V) -> None:
        """Let a value wait, in place of an older one of its key."""
        async with self._changed:
            self._waiting[key] = value
            self._changed.notify()

    async def take(self) -> tuple[K, V] | None:
        """Wait for a value whose key is free; None: the queue is closed.

        The key is the caller's until it calls `done`, which it must in any case.
        """
        async with self._changed:
            while not self._closed:
                for key, value in self._waiting.items():
                    if key not in self._busy:
                        del self._waiting[key]
                        self._busy.add(key)
                        return key, value
                await self._changed.wait()
            return None

    async def done(self, key: K, again: V | None = None) -> None:
        """Free a key; `again` waits once more unless something newer does."""
        async with self._changed:
            self._busy.discard(key)
            if again is not None:
                self._waiting.setdefault(key, again)
            self._changed.notify()

    async def close(self) -> None:
        """Let every `take` return None."""
        async with self._changed:
            self._closed = True
            self._changed.notify_all()
