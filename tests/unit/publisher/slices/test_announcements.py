"""What node agents say is taken in before anybody hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from contracts.ids import DriverName, NodeName, PoolID
from contracts.messages import DevicesAnnounced, HealthJudged, Message
from contracts.topics import Topic
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.announcement_limits import AnnouncementLimits
from publisher.slices.announcements import Announcements
from publisher.slices.eviction_budget import EvictionBudget
from runtime.bus.bus import Bus
from runtime.wire import Incoming, TopicBatch
from tests import builders
from tests.builders.decisions import CLUSTER

LIMITS = AnnouncementLimits()
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
    announced = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    heard: list[tuple[NodeName, frozenset[PoolID], int]] = []

    def hear(node: NodeName, pools: frozenset[PoolID]) -> None:
        heard.append((node, pools, len(list(announced.pools()))))

    bus = cast("Bus", OneBatchBus())
    announcements = Announcements(CLUSTER, bus, announced, LIMITS, hear)
    await announcements.tasks()["inventories"](asyncio.Event())
    assert heard == [(NODE, frozenset({POOL_ID}), 1)]


async def test_all_is_known_once_both_topics_are_read() -> None:
    """A pool is no pool to publish while its health is unknown."""
    bus = cast("Bus", OneBatchBus())
    announced = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    announcements = Announcements(CLUSTER, bus, announced, LIMITS)
    tasks, synced = announcements.tasks(), announcements._caught_up
    await tasks["inventories"](asyncio.Event())
    assert not synced
    await tasks["health"](asyncio.Event())
    assert synced
    await announcements.wait_synced(asyncio.Event())


async def test_what_is_beyond_the_limits_is_not_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No listener hears of it, and the log names node, pool and reason."""
    announced = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    limits = AnnouncementLimits(drivers=frozenset({DriverName("other.example.com")}))
    bus = cast("Bus", OneBatchBus())
    await Announcements(CLUSTER, bus, announced, limits).tasks()["inventories"](
        asyncio.Event()
    )
    assert announced.pools() == frozenset()
    said = capsys.readouterr().out
    assert f"inv.v1.{CLUSTER}.{NODE}" in said
    assert f"pools[{POOL_ID}]" in said
