"""One watch a kind, whoever listens: pages of changes handed on in order.

A listener that is slow slows its kind down, never another. Knows no object.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from publisher.kube.changes import ChangePage
from runtime.log import get_logger
from runtime.run import Task

Listener = Callable[[ChangePage], Awaitable[None]]
Follow = Callable[[asyncio.Event], AsyncIterator[ChangePage]]
"""Lists and watches a kind until the event is set."""

log = get_logger(__name__)


class Informer:
    """Who listens to which kind, and whether each was read to the end once."""

    def __init__(self, follows: Mapping[str, Follow]) -> None:
        self._follows = dict(follows)
        self._listeners: dict[str, list[Listener]] = {kind: [] for kind in follows}
        self._unsynced = set(follows)
        self.synced = asyncio.Event()
        """Set once every kind was handed over that was there at the start."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Name the kinds that are followed."""
        return tuple(self._follows)

    def listen(self, kind: str, listener: Listener) -> None:
        """Hand pages of a kind to a listener as well."""
        self._listeners[kind].append(listener)

    def tasks(self) -> dict[str, Task]:
        """Name what runs for as long as the service does."""
        return {f"watch-{kind}": self._follower(kind) for kind in self._follows}

    def _follower(self, kind: str) -> Task:
        async def follow(stop: asyncio.Event) -> None:
            async for page in self._follows[kind](stop):
                for listener in self._listeners[kind]:
                    await listener(page)
                if page.synced and kind in self._unsynced:
                    self._unsynced.discard(kind)
                    log.info("kind.synced", kind=kind)
                    if not self._unsynced:
                        self.synced.set()

        return follow
