"""What node agents and ownership make of a cluster, in the test's own event loop."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from msgspec import Struct

from contracts import topics
from contracts.device import ResourcePool
from contracts.ids import DeviceID, DeviceName, NodeName
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from contracts.names import UNHEALTHY
from publisher.cluster.device_publisher import DevicePublisher
from publisher.cluster.group_queue import GroupQueue
from publisher.cluster.observer import Observer
from publisher.kube.informer import Informer, follow
from publisher.ownership.ownership import Ownership
from publisher.service import utc_now
from publisher.slices.announcement_limits import AnnouncementLimits
from runtime.bus.bus import Bus
from runtime.kube.api import KubernetesApi
from runtime.kube.kinds import NODE
from runtime.run import Task, serve
from runtime.waits import first_of
from runtime.wire import BusSettings, Outgoing
from tests import builders
from tests.builders.decisions import CLUSTER
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.server import ControlPlane
from tests.lab.nats_server import LabServer
from tests.lab.services import eventually

WAIT_S = 120.0


class Agents(Struct, frozen=True, kw_only=True):
    """The agent of one node with one pool, and the cluster that it tells of it."""

    bus: Bus
    nats_url: str
    kubeconfig: Path
    kube: Kube
    node: str
    driver: str

    def pool(self, count: int) -> ResourcePool:
        """Make the node's pool with so many devices."""
        return builders.pool(
            *builders.devices(count), name=self.node, driver=self.driver
        )

    def other_pool(self) -> ResourcePool:
        """Make another pool of the node."""
        return builders.pool(name=f"{self.node}/other", driver=self.driver)

    @asynccontextmanager
    async def running(self, *drivers: str, nodes: str = "") -> AsyncIterator[None]:
        """Run the writers while the block runs; they must stop as asked.

        Owned are `drivers` on nodes with the label `nodes`; without drivers nothing.
        """
        classes = () if drivers else ("nothing",)
        owned = Ownership.of(drivers, classes, (nodes,) if nodes else ())
        stop = asyncio.Event()

        @asynccontextmanager
        async def open_tasks() -> AsyncIterator[dict[str, Task]]:
            settings = BusSettings(servers=(self.nats_url,), name="publisher")
            way = KubernetesApi.open(str(self.kubeconfig))
            async with Bus.open(settings) as bus, way as api:
                yield await _tasks(bus, api, owned)

        running = asyncio.create_task(serve("publisher", open_tasks, stop))
        try:
            yield
        finally:
            stop.set()
            assert await running == 0

    async def announce(self, *pools: ResourcePool) -> None:
        """Say that the node has these pools."""
        name = NodeName(self.node)
        message = DevicesAnnounced(cluster=CLUSTER, node=name, pools=pools)
        data = topics.INVENTORIES.codec.encode(message)
        subject = topics.INVENTORIES.subject(CLUSTER, name)
        await self.bus.publish(Outgoing(subject=subject, data=data, zstd=True))

    async def judge(self, *sick: str) -> None:
        """Say that these devices, and no others, are not healthy."""
        pool = self.pool(1)
        message = HealthJudged(
            cluster=CLUSTER,
            node=NodeName(self.node),
            devices=tuple(
                DeviceHealth(
                    device=DeviceID(pool.driver, pool.name, DeviceName(name)),
                    verdict="Unhealthy",
                    taints=(builders.taint(UNHEALTHY),),
                    message="XID 79",
                )
                for name in sick
            ),
        )
        data = topics.HEALTH.codec.encode(message)
        subject = topics.HEALTH.subject(CLUSTER, message.node)
        await self.bus.publish(Outgoing(subject=subject, data=data))

    async def slices(self, holds: Callable[[list[Json]], bool]) -> list[Json]:
        """Wait until something holds of the driver's slices, in their order."""
        slices: list[Json] = []
        select = f"spec.driver={self.driver}"

        async def hold() -> bool:
            slices[:] = await self.kube.list(
                objects.RESOURCE, "ResourceSlice", fieldSelector=select
            )
            slices.sort(key=lambda entry: str(entry["metadata"]["name"]))
            return holds(slices)

        await eventually(hold, lambda: f"as awaited: {slices}", WAIT_S)
        return slices


async def agents_of(
    control_plane: ControlPlane, kube: Kube, bus: Bus, nats_server: LabServer
) -> Agents:
    """Make a Node, and a driver of its own."""
    name = f"test-{secrets.token_hex(4)}"
    await kube.create(objects.node(name))
    return Agents(
        bus=bus,
        nats_url=nats_server.url,
        kubeconfig=control_plane.kubeconfig(),
        kube=kube,
        node=name,
        driver=f"{name}.example.com",
    )


async def _tasks(bus: Bus, api: KubernetesApi, owned: Ownership) -> dict[str, Task]:
    """Put together what the service of a cluster puts together, without the rest."""
    served = await api.fetch_served_kinds()
    observer = Observer(
        served.resource_claim, GroupQueue(asyncio.Event()).add, now=lambda: ""
    )
    agents = DevicePublisher(
        CLUSTER,
        bus,
        api=api,
        served=served,
        claims=observer.view,
        ownership=owned,
        now=utc_now,
        limits=AnnouncementLimits(worst_effect="NoExecute"),
        evictions_percent=100.0,
    )
    kinds = (NODE, served.resource_slice, served.resource_claim)
    rules = served.device_taint_rule
    followed = [*kinds, *(() if rules is None else (rules,))]
    informer = Informer(
        {kind.name: partial(follow, api, kind) for kind in followed},
        ({served.resource_claim.name}, observer.take),
        (agents.kinds, agents.take),
    )

    async def write(stop: asyncio.Event) -> None:
        await first_of(informer.synced, stop)
        await agents.write(stop)

    return {**informer.tasks(), **agents.tasks(), "write": write}


def sizes(slices: list[Json]) -> list[int]:
    """Count the devices of each slice."""
    return [len(entry["spec"].get("devices", ())) for entry in slices]


def taints(slices: list[Json]) -> dict[str, list[str]]:
    """Give the keys of the taints of each device that has some."""
    return {
        device["name"]: [taint["key"] for taint in device["taints"]]
        for entry in slices
        for device in entry["spec"].get("devices", ())
        if device.get("taints")
    }


async def said(capsys: pytest.CaptureFixture[str], words: str) -> str:
    """Wait until the log says something; gives all that it said since it was read."""
    output: list[str] = []

    def is_said() -> bool:
        output.append(capsys.readouterr().out)
        return words in "".join(output)

    await eventually(is_said, lambda: f"{words} in {output}", WAIT_S)
    return "".join(output)
