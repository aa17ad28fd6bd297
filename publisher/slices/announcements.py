"""Inventories and health in, for everybody who acts on them.

Follows what node agents say and tells each listener which pools are concerned. Decides
nothing, writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from contracts.ids import ClusterName, NodeName, PoolID
from contracts.topics import HEALTH, INVENTORIES, M, Topic
from publisher.slices.announced_pools import AnnouncedPools
from runtime.bus.bus import Bus
from runtime.bus.reader import CaughtUp
from runtime.refusals import Refusals
from runtime.run import Task
from runtime.waits import first_of
from runtime.wire import TopicBatch

Hear = Callable[[NodeName, frozenset[PoolID]], None]
"""Told which node spoke, and which pools it changed thereby."""


class Announcements:
    """The two topics of node agents, and who is told what they say."""

    def __init__(
        self,
        cluster: ClusterName,
        bus: Bus,
        announced: AnnouncedPools,
        *listeners: Hear,
    ) -> None:
        """`announced` takes in every message; the listeners are told afterwards."""
        self._cluster = cluster
        self._bus = bus
        self._announced = announced
        self._listeners = listeners
        self._refusals = Refusals()
        self._caught_up = CaughtUp((INVENTORIES, HEALTH))

    async def wait_synced(self, stop: asyncio.Event) -> None:
        """Wait until everything that was said before is known, or `stop`."""
        await first_of(self._caught_up.event, stop)

    def tasks(self) -> dict[str, Task]:
        """Name what runs for as long as the service does: one reader a topic."""
        return {
            "inventories": self._follow_inventories,
            "health": self._follow_health,
        }

    async def _follow_inventories(self, stop: asyncio.Event) -> None:
        async for batch in self._read(INVENTORIES, stop):
            if batch.restarted:
                # As when the bus forgets a node: whoever is still there speaks again,
                # and what is published of a node stays until then.
                for node in self._announced.nodes():
                    self._tell(node, self._announced.apply_inventory(node, None))
            for incoming in batch.messages:
                node = NodeName(incoming.names[1])
                with self._refusals.guard(incoming):
                    pools = self._announced.apply_inventory(node, incoming.message)
                    self._tell(node, pools)
            self._caught_up.note(INVENTORIES, batch)

    async def _follow_health(self, stop: asyncio.Event) -> None:
        # Where the stream was made anew, what was said before counts until it is said
        # again: a taint that goes too early is worse than one that stays too long.
        async for batch in self._read(HEALTH, stop):
            for incoming in batch.messages:
                node = NodeName(incoming.names[1])
                with self._refusals.guard(incoming):
                    pools = self._announced.apply_health(node, incoming.message)
                    self._tell(node, pools)
            self._caught_up.note(HEALTH, batch)

    def _read(
        self, topic: Topic[M], stop: asyncio.Event
    ) -> AsyncIterator[TopicBatch[M]]:
        return self._bus.read(topic, self._cluster, stop=stop, survives_restart=True)

    def _tell(self, node: NodeName, pools: frozenset[PoolID]) -> None:
        for hear in self._listeners:
            hear(node, pools)
