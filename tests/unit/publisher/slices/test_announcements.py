"""What node agents say is taken in before anybody hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from contracts.ids import NodeName, PoolID
from contracts.messages import DevicesAnnounced, HealthJudged, Message
from contracts.topics import Topic
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.announcements import Announcements
from runtime.bus.bus import Bus
from runtime.wire import Incoming, TopicBatch
from tests import builders
from tests.builders.decisions import CLUSTER

NODE = NodeName("node-1")
POOL = builders.pool()
POOL_ID = PoolID(POOL.driver, POOL.name)
SAID: dict[str, Message] = {
    "inv": DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(POOL,)),
    "health": HealthJudged(cluster=CLUSTER, node=NODE, devices=()),
}


class OneBatchBus:
    """Has one message of each topic."""

    async def read(
        self,
        topic: Topic[Any],
        *names: str,
        stop: asyncio.Event,
        survives_restart: bool,
    ) -> AsyncIterator[TopicBatch[Any]]:
        """Hand over the message."""
        assert survives_restart
        message = SAID[topic.entity]
        incoming = Incoming(
            topic=topic, names=(*names, NODE), message=message, data=b"", sequence=1
        )
        yield TopicBatch(messages=(incoming,), caught_up=True)
        assert not stop.is_set()


async def test_listeners_hear_which_pools_are_concerned() -> None:
    """When they do, the pools say already what was announced."""
    announced = AnnouncedPools(lambda *_: False)
    heard: list[tuple[NodeName, frozenset[PoolID], int]] = []

    def hear(node: NodeName, pools: frozenset[PoolID]) -> None:
        heard.append((node, pools, len(list(announced.pools()))))

    bus = cast("Bus", OneBatchBus())
    announcements = Announcements(CLUSTER, bus, announced, hear)
    await announcements.tasks()["inventories"](asyncio.Event())
    assert heard == [(NODE, frozenset({POOL_ID}), 1)]


async def test_all_is_known_once_both_topics_are_read() -> None:
    """A pool is no pool to publish while its health is unknown."""
    bus = cast("Bus", OneBatchBus())
    announcements = Announcements(CLUSTER, bus, AnnouncedPools(lambda *_: False))
    tasks, synced = announcements.tasks(), announcements._caught_up
    await tasks["inventories"](asyncio.Event())
    assert not synced
    await tasks["health"](asyncio.Event())
    assert synced
    await announcements.wait_synced(asyncio.Event())
