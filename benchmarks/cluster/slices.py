"""What node agents say -> ResourceSlices on a real API server.

Nodes of 8 GPUs; the publisher is a process of its own, nats-server, etcd and
kube-apiserver run beside it on the same cores (no fsync). All agents announce at once:
seconds until every slice is there, owned devices tainted. Then single health changes,
from before the message is sent until a watch shows the slice: ms. Then all nodes at
once. Last a bare loop that creates as many equal slices by requests alone.

    python -m benchmarks.cluster.slices [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from benchmarks.bus.stack import health, inventory
from benchmarks.report import Row, parser, percentile, report
from benchmarks.worlds.fleets import CLUSTER, DRIVER, uniform
from contracts.device import DeviceTaint
from contracts.ids import DeviceID, DriverName
from contracts.kubernetes.decode import to_kubernetes
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from moorings.local.nats_server import open_local_nats
from publisher.kube.informer import follow
from publisher.slices.layout import lay_out
from publisher.slices.plan_slices import plan_slices
from runtime.bus.bus import Bus
from runtime.kube.api import KubernetesApi
from runtime.kube.kinds import RESOURCE_SLICE
from runtime.wire import BusSettings
from tests.lab.controlplane import objects, programs
from tests.lab.controlplane.options import API_SERVER, ETCD, Options
from tests.lab.controlplane.server import ControlPlane, running
from tests.lab.services import Process
from tests.lab.services import running as started

LIMIT_S = 300.0
SINGLE = 50
TAINT = DeviceTaint(
    key="moorings.dev/unhealthy",
    value="Unhealthy",
    effect="NoSchedule",
    time_added="2026-01-01T00:00:00Z",
)
Json = dict[str, Any]


class Slices:
    """The slices of one driver as a watch shows them."""

    def __init__(self) -> None:
        self._sick: dict[str, int] = {}
        """Devices that are tainted because they are not healthy, by slice."""
        self._changed = asyncio.Condition()

    async def follow(self, api: KubernetesApi, stop: asyncio.Event) -> None:
        """Take in what a watch shows until `stop`."""
        selector = f"spec.driver={DRIVER}"
        async for page in follow(api, RESOURCE_SLICE, stop, field_selector=selector):
            async with self._changed:
                for change in page.changes:
                    assert change.object is not None
                    self._sick[change.key] = sick(change.object)
                self._changed.notify_all()

    async def until(self, *, count: int, sick: int) -> None:
        """Wait until so many slices with so many sick devices are there."""
        async with asyncio.timeout(LIMIT_S), self._changed:
            await self._changed.wait_for(
                lambda: (len(self._sick), sum(self._sick.values())) == (count, sick)
            )


def sick(slice_object: Json) -> int:
    """Count the devices of a slice that are tainted because they are not healthy."""
    return sum(
        taint["key"] == TAINT.key
        for device in slice_object["spec"]["devices"]
        for taint in device.get("taints", ())
    )


def judged(announced: DevicesAnnounced, *indices: int) -> HealthJudged:
    """Make a report that only these devices of a node's pool are unhealthy."""
    (pool,) = announced.pools
    devices = tuple(
        DeviceHealth(
            device=DeviceID(pool.driver, pool.name, pool.devices[index].name),
            verdict="Unhealthy",
            taints=(TAINT,),
        )
        for index in indices
    )
    return HealthJudged(cluster=CLUSTER, node=announced.node, devices=devices)


def bare(announced: DevicesAnnounced) -> Json:
    """Give the slice of a node as it is created, of another driver."""
    (pool,) = announced.pools
    other = replace(pool, driver=DriverName("bare.example.com"))
    planned = lay_out(other, announced.node, {}, owned=True)
    (step,) = plan_slices(planned, (), now="2026-01-01T00:00:00Z")
    body = to_kubernetes(step.object)
    body["metadata"]["name"] = f"bare-{announced.node}"  # ours would be taken away
    return body


async def create_bare(api: KubernetesApi, fleet: Sequence[DevicesAnnounced]) -> float:
    """Create as many slices by nothing but requests; gives the seconds."""
    bodies = list(map(bare, fleet))
    began = perf_counter()
    await asyncio.gather(*(api.create(RESOURCE_SLICE, body) for body in bodies))
    return perf_counter() - began


async def measure(bus: Bus, api: KubernetesApi, fleet: list[DevicesAnnounced]) -> Row:
    """Announce the fleet, then change health; the publisher runs already."""
    stop, slices, count = asyncio.Event(), Slices(), len(fleet)
    following = asyncio.create_task(slices.follow(api, stop))
    first, *rest = fleet
    await bus.publish_many([inventory(first)])  # the publisher leads when this is there
    await slices.until(count=1, sick=0)
    began = perf_counter()
    await bus.publish_many(list(map(inventory, rest)))
    await slices.until(count=count, sick=0)
    announced_s = perf_counter() - began
    single: list[float] = []
    for number in range(SINGLE):
        began = perf_counter()
        await bus.publish(health(judged(fleet[number % count], number // count % 8)))
        await slices.until(count=count, sick=1)
        single.append(perf_counter() - began)
        await bus.publish(health(judged(fleet[number % count])))
        await slices.until(count=count, sick=0)
    began = perf_counter()
    await bus.publish_many([health(judged(announced, 7)) for announced in fleet])
    await slices.until(count=count, sick=count)
    all_s = perf_counter() - began
    bare_s = await create_bare(api, rest)
    stop.set()
    await following
    return {
        "nodes": count,
        "announced s": announced_s,
        "slices/s": (count - 1) / announced_s,
        "bare s": bare_s,
        "of bare %": 100 * bare_s / announced_s,
        "health p50 ms": percentile(single, 0.5) * 1000,
        "health p99 ms": percentile(single, 0.99) * 1000,
        "all sick s": all_s,
    }


@asynccontextmanager
async def published(
    control_plane: ControlPlane, folder: Path
) -> AsyncIterator[tuple[Bus, KubernetesApi]]:
    """Run NATS and a publisher; gives the bus and the way to the API server."""
    kubeconfig = str(control_plane.kubeconfig())
    async with open_local_nats(folder / "nats") as url:
        settings = BusSettings(servers=(url,), name="benchmark")
        process = Process(
            "publisher",
            folder / "publisher.log",
            PUBLISHER_SERVERS=url,
            PUBLISHER_KUBECONFIG=kubeconfig,
            PUBLISHER_NAMESPACE="default",
            PUBLISHER_OWNED_DRIVERS=DRIVER,
        )
        async with Bus.open(settings) as bus, KubernetesApi.open(kubeconfig) as api:
            await bus.wait_connected(10)
            await bus.ensure_streams()
            async with started(process):
                yield bus, api


async def run(control_plane: ControlPlane, folder: Path, nodes: int) -> Row:
    """Measure one size on a control plane of its own."""
    fleet = uniform(nodes)
    async with control_plane.client() as kube:
        made = (kube.create(objects.node(announced.node)) for announced in fleet)
        await asyncio.gather(*made)
    async with published(control_plane, folder) as (bus, api):
        return await measure(bus, api, fleet)


def main() -> None:
    """Measure all sizes."""
    made = parser(__doc__ or "")
    made.add_argument("--nodes", type=int, help="this many only")
    options = made.parse_args()
    binaries = programs.built()
    assert binaries is not None, programs.NO_CONTROL_PLANE
    sizes = (50,) if options.size == "small" else (100, 500, 2000)
    rows: list[Row] = []
    for nodes in (options.nodes,) if options.nodes else sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            parts = Options(programs=(ETCD, API_SERVER))
            with running(binaries, folder, parts) as control_plane:
                rows.append(asyncio.run(run(control_plane, folder, nodes)))
    report("slices", options, rows)


if __name__ == "__main__":
    main()
