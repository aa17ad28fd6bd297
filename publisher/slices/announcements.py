"""Inventories and health in, for everybody who acts on them.

Follows what node agents say and tells each listener which pools are concerned. Decides
nothing, writes nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable

from contracts.ids import ClusterName, NodeName, PoolID
from contracts.topics import HEALTH, INVENTORIES, M, Topic
from publisher.slices.announced_pools import AnnouncedPools
from runtime.bus.bus import Bus
from runtime.bus.reader import CaughtUp
from runtime.run import Task
from runtime.waits import first_of
from runtime.wire import TopicBatch

Hear = Callable[[NodeName, frozenset[PoolID]], None]
"""Told which node spoke, and which pools it changed thereby."""


class Announcements:
    """The streams of inventories and health, and what they say in all."""

    def __init__(
        self, cluster: ClusterName, bus: Bus, announced: AnnouncedPools
    ) -> None:
        self._cluster = cluster
        self._bus = bus
        self.announced = announced
        self._listeners: list[Hear] = []
        self._caught_up = CaughtUp((INVENTORIES, HEALTH))
        self.counts: Counter[str] = Counter()
        """Messages taken in and refused, by entity."""

    async def wait_synced(self, stop: asyncio.Event) -> None:
        """Wait until everything that was said before is known, or `stop`."""
        await first_of(self._caught_up.event, stop)

    def listen(self, hear: Hear) -> None:
        """Tell somebody of everything that is said from now on."""
        self._listeners.append(hear)

    def tasks(self) -> dict[str, Task]:
        """Name what runs for as long as the service does."""
        return {
            "inventories": self._follow_inventories,
            "health": self._follow_health,
        }

    async def _follow_inventories(self, stop: asyncio.Event) -> None:
        async for batch in self._read(INVENTORIES, stop):
            for incoming in batch.messages:
                node = NodeName(incoming.names[1])
                self._tell(node, self.announced.announce(node, incoming.message))
            self._caught_up.note(INVENTORIES, batch)

    async def _follow_health(self, stop: asyncio.Event) -> None:
        async for batch in self._read(HEALTH, stop):
            for incoming in batch.messages:
                node = NodeName(incoming.names[1])
                self._tell(node, self.announced.judge(node, incoming.message))
            self._caught_up.note(HEALTH, batch)

    def _read(
        self, topic: Topic[M], stop: asyncio.Event
    ) -> AsyncIterator[TopicBatch[M]]:
        return self._bus.read(topic, self._cluster, stop=stop, counts=self.counts)

    def _tell(self, node: NodeName, pools: frozenset[PoolID]) -> None:
        for hear in self._listeners:
            hear(node, pools)
