"""Inventories and health in, for everybody who acts on them.

Follows what node agents say and tells each listener which pools are concerned. Decides
nothing, writes nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from contracts import messages, subjects
from contracts.codec import Codec
from contracts.errors import ContractsError
from contracts.ids import ClusterName, NodeName, PoolID
from contracts.subjects import untoken
from publisher.slices.announced_pools import AnnouncedPools
from runtime.bus.bus import Bus
from runtime.log import get_logger
from runtime.run import Task
from runtime.waits import first_of
from runtime.wire import Received

Hear = Callable[[NodeName, frozenset[PoolID]], None]
"""Told which node spoke, and which pools it changed thereby."""

log = get_logger(__name__)


class Announcements:
    """The streams of inventories and health, and what they say in all."""

    def __init__(
        self, cluster: ClusterName, bus: Bus, announced: AnnouncedPools
    ) -> None:
        self._cluster = cluster
        self._bus = bus
        self.announced = announced
        self._listeners: list[Hear] = []
        self._unsynced = {"inv", "health"}
        self._synced = asyncio.Event()
        self.counts: Counter[str] = Counter()
        """Messages taken in and refused, by entity."""

    async def wait_synced(self, stop: asyncio.Event) -> None:
        """Wait until everything that was said before is known, or `stop`."""
        await first_of(self._synced, stop)

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
        await self._follow("INV", "inv", messages.INVENTORY, stop)

    async def _follow_health(self, stop: asyncio.Event) -> None:
        await self._follow("HEALTH", "health", messages.HEALTH, stop)

    async def _follow(
        self, stream: str, entity: str, codec: Codec[Any], stop: asyncio.Event
    ) -> None:
        wanted = [subjects.wildcard(entity, self._cluster)]
        async for page in self._bus.follow(stream, wanted, stop):
            for received in page.messages:
                self._take(received, entity, codec)
            if page.synced and entity in self._unsynced:
                self._unsynced.discard(entity)
                log.info("stream.synced", stream=stream)
                if not self._unsynced:
                    self._synced.set()

    def _take(self, received: Received, entity: str, codec: Codec[Any]) -> None:
        message: Any = None
        try:
            node = NodeName(untoken(received.subject.rpartition(".")[2]))
            if not received.gone:
                message = codec.decode(received.data)
        except ContractsError as error:
            self._refuse(received.subject, entity, str(error))
            return
        named = (self._cluster, node)
        if message is not None and (message.cluster, message.node) != named:
            self._refuse(received.subject, entity, f"is about node {message.node}")
            return
        self.counts[entity] += 1
        if entity == "health":
            pools = self.announced.judge(node, message)
        else:
            pools = self.announced.announce(node, message)
        for hear in self._listeners:
            hear(node, pools)

    def _refuse(self, subject: str, entity: str, reason: str) -> None:
        self.counts[f"{entity}.refused"] += 1
        log.error("message.refused", subject=subject, reason=reason[:500])
