"""How soon does the bus hold what a large cluster holds, and how soon a change of it?

A real kube-apiserver with nodes, a ResourceSlice of 8 devices on each, and claims that
are allocated; a publisher of its own process beside it. `first` begins with an empty
bus, `again` with what the first one left there, as a standby that takes over. Seconds
from the start of the process (Python and all) until it compared and until the bus held
everything; peak memory; then, with one change at a time, milliseconds from the API
server's answer until the message is with a subscriber, and of that what the watch
alone takes (the same change seen by a plain watch of ours).

    python -m benchmarks.cluster.watch_state [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import nats.errors
from msgspec import Struct
from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks.report import Row, arguments, cpu_seconds, percentile, report
from benchmarks.worlds.fleets import CLUSTER
from contracts import topics
from moorings.local.nats_server import open_local_nats
from publisher.kube.informer import follow
from runtime.kube.api import Json, KubernetesApi
from runtime.kube.kinds import (
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
)
from tests.lab.controlplane import objects, programs, server
from tests.lab.controlplane.options import API_SERVER, ETCD, Options

SIZES = {"small": (500, 2_000), "full": (5_000, 20_000)}
"""Nodes, and allocated claims."""
DRIVER, CLASS, SYSTEM = "gpu.example.com", "gpu", "moorings-system"
CHANGES = 100
LIMIT_S = 300.0


async def fill(api: KubernetesApi, nodes: int, claims: int) -> None:
    """Make everything, many at a time."""
    await api.create(NAMESPACE, _namespace())
    await api.create(DEVICE_CLASS, objects.device_class(CLASS, DRIVER))
    await _all(api.create(NODE, _node(number)) for number in range(nodes))
    await _all(api.create(RESOURCE_SLICE, _slice(number)) for number in range(nodes))
    await _all(_allocated(api, number, nodes) for number in range(claims))


async def _all(work: Iterable[Awaitable[object]]) -> None:
    todo = iter(work)

    async def some() -> None:
        for awaitable in todo:
            await awaitable

    await asyncio.gather(*(some() for _ in range(32)))


def _namespace() -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}


def _node(number: int) -> Json:
    rack = {"topology.kubernetes.io/rack": f"rack-{number // 16}"}
    return objects.node(f"node-{number:05}", rack)


def _slice(number: int) -> Json:
    devices = []
    for index in range(8):
        attributes = {
            "model": {"string": "a100"},
            "uuid": {"string": f"gpu-{number:05}-{index}"},
            "numaNode": {"int": index // 4},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index:02}"},
            "driverVersion": {"version": "550.54.15"},
        }
        capacity = {"memory": {"value": "80Gi"}}
        device = {"name": f"gpu-{index}", "attributes": attributes}
        devices.append({**device, "capacity": capacity})
    return objects.resource_slice(DRIVER, f"node-{number:05}", devices)


async def _allocated(api: KubernetesApi, number: int, nodes: int) -> None:
    name, node = f"claim-{number:05}", f"node-{number % nodes:05}"
    claim = objects.claim("default", name, objects.requests(CLASS))
    claim["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "g"}
    await api.create(RESOURCE_CLAIM, claim)
    device = f"gpu-{number // nodes}"
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    pod = {"resource": "pods", "name": f"pod-{number:05}", "uid": f"uid-{number:05}"}
    status = {"allocation": allocation, "reservedFor": [pod]}
    body = {"status": status}
    await api.patch(RESOURCE_CLAIM, f"default/{name}", body, subresource="status")


class Publisher(Struct):
    """A publisher that runs, and how it began."""

    pid: int
    compared_s: float
    complete_s: float
    cpu_s: float
    """Until then."""

    def peak_mib(self) -> int:
        """Read how much memory it had at most."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        return int(fields["VmHWM"].split()[0]) // 1024


@asynccontextmanager
async def publisher(
    kubeconfig: Path, url: str, client: Client, count: int, log: Path
) -> AsyncIterator[Publisher]:
    """Run a publisher; it is ready when this yields."""
    began_s = time.perf_counter()
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: ASYNC220  # a process of its own
            [sys.executable, "-m", "publisher"],
            env={
                **os.environ,
                "PUBLISHER_SERVERS": url,
                "PUBLISHER_CLUSTER": CLUSTER,
                "PUBLISHER_KUBECONFIG": str(kubeconfig),
                "PUBLISHER_OWNED_DRIVERS": DRIVER,
            },
            stdout=file,
            stderr=file,
        )

    async def until(holds: Callable[[], Awaitable[bool]]) -> float:
        async with asyncio.timeout(LIMIT_S):
            while not await holds():
                assert process.poll() is None, f"the publisher ended: see {log}"
                await asyncio.sleep(0.02)
        return time.perf_counter() - began_s

    async def compared() -> bool:
        return b"state.compared" in await asyncio.to_thread(log.read_bytes)

    async def complete() -> bool:
        try:
            info = await client.jetstream().stream_info("STATE")
        except nats.errors.Error:
            return False
        return info.state.messages >= count

    try:
        compared_s = await until(compared)
        complete_s = await until(complete)
        cpu_s = cpu_seconds(process.pid)
        yield Publisher(process.pid, compared_s, complete_s, cpu_s)
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait)


async def changes(
    api: KubernetesApi, server_: Client, rounds: int
) -> dict[str, list[float]]:
    """Change one node at a time; seconds until a watch and until a subscriber know."""
    came: dict[str, asyncio.Queue[float]] = {"watch": asyncio.Queue()}
    came["bus"] = asyncio.Queue()
    stop = asyncio.Event()

    async def note(_: Msg) -> None:
        came["bus"].put_nowait(time.perf_counter())

    async def watch() -> None:
        chosen = "metadata.name=node-00000"
        async for page in follow(api, NODE, stop, field_selector=chosen):
            for _ in page.changes:
                came["watch"].put_nowait(time.perf_counter())

    watching = asyncio.create_task(watch())
    await came["watch"].get()
    subject = topics.STATE.subject(CLUSTER, NODE.name, "node-00000")
    subscription = await server_.subscribe(subject, cb=note)
    await server_.flush()
    seconds_by_subscriber: dict[str, list[float]] = {name: [] for name in came}
    for number in range(rounds):
        body = {"metadata": {"labels": {"round": str(number)}}}
        await api.patch(NODE, "node-00000", body)
        answered_s = time.perf_counter()
        for name, queue in came.items():
            seconds_by_subscriber[name].append(await queue.get() - answered_s)
        await asyncio.sleep(0.05)
    await subscription.unsubscribe()
    stop.set()
    await watching
    return seconds_by_subscriber


async def measure(
    plane: server.ControlPlane, folder: Path, nodes: int, claims: int
) -> list[Row]:
    """Fill the cluster, then begin twice."""
    kubeconfig = plane.kubeconfig()
    rows: list[Row] = []
    count = 2 * nodes + claims + 1
    async with (
        KubernetesApi.open(str(kubeconfig)) as api,
        open_local_nats(folder / "nats") as url,
    ):
        began_s = time.perf_counter()
        await fill(api, nodes, claims)
        print(f"{count} objects made in {time.perf_counter() - began_s:.0f} s")
        client = await nats.connect(url)
        for start in ("first", "again"):
            log = folder / f"{start}.log"
            async with publisher(kubeconfig, url, client, count, log) as measured:
                late = await changes(api, client, CHANGES)
                row: Row = {
                    "start": start,
                    "objects": count,
                    "compared s": measured.compared_s,
                    "complete s": measured.complete_s,
                    "publisher CPU s": measured.cpu_s,
                    "peak MiB": measured.peak_mib(),
                    "watch p50 ms": 1000 * percentile(late["watch"], 0.5),
                    "bus p50 ms": 1000 * percentile(late["bus"], 0.5),
                    "bus p99 ms": 1000 * percentile(late["bus"], 0.99),
                }
                rows.append(row)
        await client.close()
    return rows


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    binaries = programs.built()
    if binaries is None:
        raise SystemExit(programs.NO_CONTROL_PLANE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = Options(programs=(ETCD, API_SERVER))
        with server.running(binaries, folder, small) as plane:
            rows = asyncio.run(measure(plane, folder, *SIZES[options.size]))
    report("watch_state", options, rows)


if __name__ == "__main__":
    main()
