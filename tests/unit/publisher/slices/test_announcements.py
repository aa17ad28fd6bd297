"""What is announced is kept pool by pool, and known before it is told of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from msgspec.structs import replace

from contracts.device import DeviceTaint, ResourcePool
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolID
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged, Message
from contracts.names import UNHEALTHY
from contracts.topics import Topic
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.announcement_limits import AnnouncementLimits
from publisher.slices.announcements import Announcements
from publisher.slices.eviction_budget import EvictionBudget
from publisher.slices.layout import PoolLayout
from runtime.bus.bus import Bus
from runtime.wire import Incoming, TopicBatch
from tests import builders
from tests.builders.decisions import CLUSTER

LIMITS = AnnouncementLimits()
NODE = NodeName("node-1")
EMPTY = builders.pool()
EMPTY_ID = PoolID(EMPTY.driver, EMPTY.name)
SAID: dict[str, Message] = {
    "inv": DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(EMPTY,)),
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
    assert heard == [(NODE, frozenset({EMPTY_ID}), 1)]


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


OTHER = NodeName("node-2")
POOL = builders.pool(*builders.devices(2))
POOL_ID = PoolID(POOL.driver, POOL.name)


def announced(*pools: ResourcePool, node: NodeName = NODE) -> DevicesAnnounced:
    return DevicesAnnounced(cluster=CLUSTER, node=node, pools=pools)


def unhealthy(device: str) -> HealthJudged:
    identity = DeviceID(POOL.driver, POOL.name, DeviceName(device))
    item = DeviceHealth(
        device=identity, verdict="Unhealthy", taints=(builders.taint(),)
    )
    return HealthJudged(cluster=CLUSTER, node=NODE, devices=(item,))


def tainted(wanted: object) -> list[str]:
    """Name the devices with taints."""
    assert isinstance(wanted, PoolLayout)
    devices = [device for item in wanted.slices for device in item.devices]
    return [device.name for device in devices if device.taints]


def test_pool_is_wanted_until_its_node_leaves_it_out() -> None:
    """An equal announcement is no news."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    assert state.layout_of(POOL_ID) is None
    assert state.apply_inventory(NODE, announced(POOL)) == {POOL_ID}
    assert state.apply_inventory(NODE, announced(POOL)) == frozenset()
    assert isinstance(state.layout_of(POOL_ID), PoolLayout)
    assert state.apply_inventory(NODE, announced()) == {POOL_ID}
    assert state.layout_of(POOL_ID) is None


def test_health_comes_and_goes_before_or_after_the_inventory() -> None:
    """Whichever comes first, the taints are right in the end."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    assert state.apply_health(NODE, unhealthy("gpu-1")) == {POOL_ID}
    state.apply_inventory(NODE, announced(POOL))
    assert tainted(state.layout_of(POOL_ID)) == ["gpu-1"]
    assert state.apply_health(NODE, unhealthy("gpu-1")) == frozenset()
    assert state.apply_health(NODE, None) == {POOL_ID}
    assert tainted(state.layout_of(POOL_ID)) == []


def test_a_device_ends_its_pods_only_when_its_turn_has_come() -> None:
    """Until then its taint keeps new ones away."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(5.0))
    state.apply_inventory(NODE, announced(POOL))
    ending = DeviceTaint(key=UNHEALTHY, effect="NoExecute")
    judged = unhealthy("gpu-1").devices[0]
    health = replace(unhealthy("gpu-1"), devices=(replace(judged, taints=(ending,)),))
    state.apply_health(NODE, health)

    def effects() -> list[str]:
        layout = state.layout_of(POOL_ID)
        assert isinstance(layout, PoolLayout)
        devices = [device for item in layout.slices for device in item.devices]
        return [taint.effect for device in devices for taint in device.taints]

    assert effects() == ["NoSchedule"]
    assert state.admit_evictions(0.0) == {POOL_ID}
    assert state.nodes_of([POOL_ID]) == {NODE}
    assert effects() == ["NoExecute"]


def test_pool_of_two_nodes_is_in_doubt_until_one_of_them_stops() -> None:
    """While it is in doubt nothing is published anew."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    shared = builders.pool(*builders.devices(2), name="shared")
    pool = PoolID(shared.driver, shared.name)
    state.apply_inventory(NODE, announced(shared))
    state.apply_inventory(OTHER, announced(shared, node=OTHER))
    reason = f"pool {pool} is announced by nodes node-1 and node-2"
    assert state.layout_of(pool) == reason
    assert state.apply_inventory(NODE, None) == {pool}
    wanted = state.layout_of(pool)
    assert isinstance(wanted, PoolLayout)
    assert wanted.node == OTHER


def test_a_node_has_no_say_about_a_pool_of_another() -> None:
    """Neither what is published of it changes, nor what is known of its health."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    state.apply_inventory(NODE, announced(POOL))
    state.apply_health(NODE, unhealthy("gpu-1"))
    before, sick = state.layout_of(POOL_ID), state.unhealthy_of(POOL_ID)
    assert isinstance(before, PoolLayout)
    assert sick
    for theirs in (
        builders.pool(builders.device("phantom")),
        replace(POOL, devices=()),
    ):
        state.apply_inventory(OTHER, announced(theirs, node=OTHER))
        assert state.layout_of(POOL_ID) == before
        assert state.unhealthy_of(POOL_ID) == sick


def test_what_the_bus_forgets_takes_nothing_from_its_node() -> None:
    """Silence of the bus is no announcement."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    state.apply_inventory(NODE, announced(POOL))
    assert state.has_heard(NODE)
    assert state.apply_inventory(NODE, None) == {POOL_ID}
    assert not state.has_heard(NODE)


def test_pool_that_kubernetes_would_refuse_says_why() -> None:
    """The field that breaks the rule is named."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    state.apply_inventory(NODE, announced(builders.pool(builders.device("Bad Name"))))
    refused = state.layout_of(POOL_ID)
    assert isinstance(refused, str)
    assert "spec.devices[0].name" in refused
