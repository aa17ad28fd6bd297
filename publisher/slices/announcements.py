"""Inventories and health in, for everybody who acts on them.

Follows what node agents say and tells each listener which pools are concerned. Decides
nothing, writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from time import monotonic

from contracts.ids import ClusterName, NodeName, PoolID
from contracts.topics import HEALTH, INVENTORIES, M, Topic
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.announcement_limits import AnnouncementLimits
from runtime.bus.bus import Bus
from runtime.bus.reader import CaughtUp
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.run import Task
from runtime.waits import first_of
from runtime.wire import TopicBatch

_LOOK_S = 1.0

log = get_logger(__name__)

Hear = Callable[[NodeName, frozenset[PoolID]], None]
"""Told which node spoke, and which pools it changed thereby."""


class Announcements:
    """Reads the two topics of node agents and tells listeners."""

    def __init__(
        self,
        cluster: ClusterName,
        bus: Bus,
        announced: AnnouncedPools,
        limits: AnnouncementLimits,
        *listeners: Hear,
    ) -> None:
        """`announced` takes in what is within the limits; then listeners are told."""
        self._cluster = cluster
        self._bus = bus
        self._announced = announced
        self._limits = limits
        self._listeners = listeners
        self._refusals = Refusals()
        self._caught_up = CaughtUp((INVENTORIES, HEALTH))

    @property
    def is_synced(self) -> bool:
        """True if everything that was said before is known."""
        return bool(self._caught_up)

    async def wait_synced(self, stop: asyncio.Event) -> None:
        """Wait until everything that was said before is known, or `stop`."""
        await first_of(self._caught_up.event, stop)

    def tasks(self) -> dict[str, Task]:
        """Name what runs for as long as the service does: one reader a topic."""
        return {
            "inventories": self._follow_inventories,
            "health": self._follow_health,
            "evictions": self._admit_evictions,
        }

    async def _follow_inventories(self, stop: asyncio.Event) -> None:
        async for batch in self._read_topic(INVENTORIES, stop):
            if batch.restarted:
                # As when the bus forgets a node: whoever is still there speaks again,
                # and what is published of a node stays until then.
                for node in self._announced.nodes():
                    self._tell_listeners(
                        node, self._announced.apply_inventory(node, None)
                    )
            for incoming in batch.messages:
                node = NodeName(incoming.names[1])
                with self._refusals.guard(incoming):
                    message = incoming.message
                    if message is not None:
                        message, refusals = self._limits.limit_inventory(message)
                        self._refusals.note_parts(incoming, refusals)
                    self._tell_listeners(
                        node, self._announced.apply_inventory(node, message)
                    )
            self._caught_up.note(INVENTORIES, batch)

    async def _follow_health(self, stop: asyncio.Event) -> None:
        # Where the stream was made anew, what was said before counts until it is said
        # again: a taint that goes too early is worse than one that stays too long.
        async for batch in self._read_topic(HEALTH, stop):
            for incoming in batch.messages:
                node = NodeName(incoming.names[1])
                with self._refusals.guard(incoming):
                    message = incoming.message
                    if message is not None:
                        message, refusals = self._limits.limit_health(message)
                        self._refusals.note_parts(incoming, refusals)
                    self._tell_listeners(
                        node, self._announced.apply_health(node, message)
                    )
            self._caught_up.note(HEALTH, batch)

    def _read_topic(
        self, topic: Topic[M], stop: asyncio.Event
    ) -> AsyncIterator[TopicBatch[M]]:
        return self._bus.read(topic, self._cluster, stop=stop, survives_restart=True)

    async def _admit_evictions(self, stop: asyncio.Event) -> None:
        """Let devices end their pods, so many at a time."""
        while not stop.is_set():
            pools = self._announced.admit_evictions(monotonic())
            if pools:
                log.warning("devices.evicting", pools=sorted(map(str, pools)))
                for node in self._announced.nodes_of(pools):
                    self._tell_listeners(node, pools & self._announced.of_node(node))
            await first_of(stop, within_s=_LOOK_S)

    def _tell_listeners(self, node: NodeName, pools: frozenset[PoolID]) -> None:
        for hear in self._listeners:
            hear(node, pools)
