"""What the cluster holds, said on the bus: one message an object, the newest version.

Publishes only while this publisher leads; what changes before an object was published
replaces it. Decides nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

from contracts import messages, subjects
from contracts.ids import ClusterName
from contracts.messages import ObjectGone, ObjectObserved, StateMessage
from contracts.process.bus import Bus
from contracts.process.wire import Outgoing
from publisher.changes import Page
from publisher.cluster.compact import compact

_IDLE_S = 0.5


class StatePublisher:
    """Objects whose newest version is not on the bus yet."""

    def __init__(self, cluster: ClusterName, bus: Bus) -> None:
        self._cluster = cluster
        self._bus = bus
        self._due: dict[tuple[str, str], dict[str, Any] | None] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._last = 0

    async def take(self, page: Page) -> None:
        """Publish what changed, soon."""
        for change in page.changes:
            found = None if change.object is None else compact(change.object)
            self._due[change.kind, change.key] = found
        self._idle.clear()
        self._wake.set()

    async def publish(self, stop: asyncio.Event) -> None:
        """Publish until `stop`."""
        while not stop.is_set():
            self._wake.clear()
            while self._due and not stop.is_set():
                await self._publish_one()
            self._idle.set()
            try:
                async with asyncio.timeout(_IDLE_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def published(self) -> int:
        """Wait until all that was seen is on the bus; gives the last sequence."""
        await self._idle.wait()
        return self._last

    async def _publish_one(self) -> None:
        (kind, key), found = next(iter(self._due.items()))
        del self._due[kind, key]
        message: StateMessage = ObjectGone(cluster=self._cluster, kind=kind, key=key)
        if found is not None:
            message = ObjectObserved(
                cluster=self._cluster, kind=kind, key=key, object=found
            )
        subject = subjects.state(self._cluster, kind, key)
        data = messages.STATE.encode(message)
        outgoing = Outgoing(subject=subject, data=data, zstd=True)
        self._last = await self._bus.publish(outgoing)
