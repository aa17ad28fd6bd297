"""A queue of keys to work on, each once and by one worker at a time.

Whoever hears that something changed puts the key of what it is about: a gang, say, or a
group of pods. Any number of workers take; what is to be done they find out when they
begin, so that nobody does what is already outdated. A key that was taken is busy until
its worker calls `done`; one that is put meanwhile waits until then. Work on one key is
sequential, on different keys side by side. The queue is bounded by the number of keys,
and a key that waits keeps its turn.

A key needs no end of its own: once `done` was called and it is not put again, the queue
has forgotten it. `close` ends the queue: every `take` returns None from then on, and
the workers return; what still waits is found again at the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

from runtime.metrics import QueueMetrics

K = TypeVar("K", bound=Hashable)


class KeyQueue(Generic[K]):
    """Keys, oldest first; counted under a name as workqueues are."""

    def __init__(self, name: str) -> None:
        self._metrics: QueueMetrics[K] = QueueMetrics(name)
        self._waiting: dict[K, None] = {}
        self._busy: set[K] = set()
        self._changed = asyncio.Condition()
        self._closed = False

    async def put(self, key: K) -> None:
        """Let a key wait, unless it does."""
        async with self._changed:
            self._waiting.setdefault(key)
            self._metrics.added(key)
            self._changed.notify()

    async def take(self) -> K | None:
        """Wait for a key that nobody works on; None: the queue is closed.

        The key is the caller's until it calls `done`, which it must in any case.
        """
        async with self._changed:
            while not self._closed:
                for key in self._waiting:
                    if key not in self._busy:
                        del self._waiting[key]
                        self._busy.add(key)
                        self._metrics.taken(key)
                        return key
                await self._changed.wait()
            return None

    async def done(self, key: K) -> None:
        """Free a key."""
        async with self._changed:
            self._busy.discard(key)
            self._metrics.done(key)
            self._changed.notify()

    def note_retry(self) -> None:
        """Count a key whose work could not be done, and that comes again later."""
        self._metrics.retried()

    async def close(self) -> None:
        """Let every `take` return None."""
        async with self._changed:
            self._closed = True
            self._changed.notify_all()
