"""Slices follow what node agents say, and stay as they are while that is in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from contracts.device import ResourcePool, ResourceSlice
from contracts.ids import NodeName, PoolID
from contracts.messages import DevicesAnnounced
from publisher.errors import FolderError
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.eviction_budget import EvictionBudget
from publisher.slices.layout import PoolLayout, pool_of
from publisher.slices.reconciler import SliceReconciler
from publisher.slices.sink import SinkError, SlicePlan
from publisher.steps import apply_steps, key_of
from tests import builders
from tests.builders.decisions import CLUSTER

NODE = NodeName(builders.NODE)
POOL = builders.pool(*builders.devices(2))
POOL_ID = PoolID(POOL.driver, POOL.name)
NOW = "2026-11-20T12:00:00Z"


class MemorySink:
    """Keeps slices in memory, and fails so many times first."""

    def __init__(self, *there: ResourceSlice) -> None:
        self.objects = {key_of(slice_): slice_ for slice_ in there}
        self.failures = 0

    def pools(self) -> frozenset[PoolID]:
        """Name the pools that are there."""
        return frozenset(pool_of(slice_.spec) for slice_ in self.objects.values())

    def slices(self, pool: PoolID) -> tuple[ResourceSlice, ...]:
        """Return the slices of a pool."""
        return tuple(s for s in self.objects.values() if pool_of(s.spec) == pool)

    def owner_of(self, _layout: PoolLayout) -> None:
        """Return no owner."""
        return

    async def carry_out(
        self, plans: Mapping[PoolID, SlicePlan]
    ) -> dict[PoolID, SinkError]:
        """Carry out all plans, or none."""
        if self.failures:
            self.failures -= 1
            return dict.fromkeys(plans, FolderError("x", "no space left"))
        for plan in plans.values():
            self.objects = apply_steps(self.objects, plan)
        return {}


class Slices:
    """A reconciler, and the slices that it keeps."""

    def __init__(self, *there: ResourceSlice) -> None:
        self.sink = MemorySink(*there)
        self.announced = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
        self.reconciler = SliceReconciler(self.sink, self.announced, lambda: NOW)

    def say(self, *pools: ResourcePool, node: NodeName = NODE) -> None:
        """Let a node agent announce all its pools."""
        message = DevicesAnnounced(cluster=CLUSTER, node=node, pools=pools)
        self.reconciler.hear(node, self.announced.apply_inventory(node, message))

    async def publish(self) -> int:
        """Publish all that is due; returns how many devices are there then."""
        stop = asyncio.Event()
        publishing = asyncio.ensure_future(self.reconciler.publish(stop))
        for _ in range(20):
            await asyncio.sleep(0)
        stop.set()
        await publishing
        slices = self.sink.slices(POOL_ID)
        return sum(len(published.spec.devices) for published in slices)


def sent() -> ResourceSlice:
    """Make the slice of the pool as it was published before."""
    return builders.resource_slice(*POOL.devices, pool=POOL.name)


async def test_a_pool_is_there_until_its_node_leaves_it_out() -> None:
    """With the devices that were announced last."""
    slices = Slices()
    slices.say(POOL)
    assert await slices.publish() == 2
    slices.say(builders.pool(*builders.devices(3), generation=2))
    assert await slices.publish() == 3
    slices.say()
    assert await slices.publish() == 0


async def test_what_a_node_published_stays_until_it_was_heard() -> None:
    """A bus that has lost its memory takes nothing away."""
    before = sent()
    assert pool_of(before.spec) == POOL_ID
    slices = Slices(before)
    assert await slices.publish() == 2
    slices.say(node=NodeName("another"))
    assert await slices.publish() == 2
    slices.say()
    assert await slices.publish() == 0


async def test_a_pool_of_two_nodes_stays_as_it_was() -> None:
    """Which of them has it is not ours to guess."""
    slices = Slices()
    slices.say(POOL)
    assert await slices.publish() == 2
    slices.say(builders.pool(*builders.devices(3)), node=NodeName("another"))
    assert await slices.publish() == 2


async def test_a_write_that_failed_is_done_again() -> None:
    """After a pause, and though nobody says anything anew."""
    slices = Slices()
    slices.sink.failures = 1
    slices.say(POOL)
    assert await slices.publish() == 0
    due_s = slices.reconciler._due[POOL_ID]
    assert due_s > 0.0
    slices.reconciler._due[POOL_ID] = 0.0
    assert await slices.publish() == 2
