"""ResourceSlices in a folder, as real agents' messages change."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from contracts import topics
from contracts.device import ResourcePool
from contracts.ids import DeviceID, DeviceName, NodeName
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from contracts.names import UNHEALTHY
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests import builders
from tests.builders.decisions import CLUSTER
from tests.lab.nats_server import LabServer
from tests.lab.publishing import manifests, publisher

WAIT_S = 60.0


async def announce(bus: Bus, *pools: ResourcePool, node: str = builders.NODE) -> None:
    name = NodeName(node)
    message = DevicesAnnounced(cluster=CLUSTER, node=name, pools=pools)
    await bus.publish(Outgoing.of(topics.INVENTORIES, message))


async def slices(folder: Path, count: int, taints: int = 0) -> list[dict[str, Any]]:
    """Wait until so many slices with so many taints are there."""
    async with asyncio.timeout(WAIT_S):
        while True:
            bodies = list(manifests(folder, "resourceslices").values())
            devices = [device for body in bodies for device in body["spec"]["devices"]]
            tainted = sum(len(device.get("taints", ())) for device in devices)
            if len(bodies) == count and tainted == taints:
                return bodies
            await asyncio.sleep(0.01)


async def test_slices_follow_inventory_and_health_over_restarts(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Slices say what the node says, in place where one changes, else anew."""
    folder = tmp_path / "manifests"
    node = NodeName(builders.NODE)
    pool = builders.pool(*builders.devices(8))
    device = DeviceID(pool.driver, pool.name, DeviceName("gpu-3"))
    async with publisher(nats_server, folder):
        await announce(bus, pool)
        (body,) = await slices(folder, 1)
        assert body["spec"]["nodeName"] == node
        item = DeviceHealth(
            device=device, verdict="Unhealthy", taints=(builders.taint(UNHEALTHY),)
        )
        health = HealthJudged(cluster=CLUSTER, node=node, devices=(item,))
        await bus.publish(Outgoing.of(topics.HEALTH, health))
        (tainted,) = await slices(folder, 1, taints=1)
        assert tainted["spec"]["pool"] == body["spec"]["pool"]
    await announce(bus, builders.pool(*builders.devices(100)))
    async with publisher(nats_server, folder):
        grown = await slices(folder, 2, taints=1)
        assert grown[0]["spec"]["devices"][3] == tainted["spec"]["devices"][3]
        assert {body["spec"]["pool"]["generation"] for body in grown} == {2}
        await announce(bus)
        await slices(folder, 0)


async def test_bus_that_lost_its_memory_takes_no_slices_away(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Until the node speaks again, nobody knows what it has."""
    folder = tmp_path / "manifests"
    async with publisher(nats_server, folder):
        await announce(bus, builders.pool())
        await slices(folder, 1)
    await bus.purge("INV", topics.INVENTORIES.subject(CLUSTER, NodeName(builders.NODE)))
    other = builders.pool(name="node-2")
    async with publisher(nats_server, folder):
        await announce(bus, other, node="node-2")
        await slices(folder, 2)
        await announce(bus)
        (left,) = await slices(folder, 1)
    assert left["spec"]["pool"]["name"] == "node-2"
