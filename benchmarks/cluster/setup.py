"""A real control plane with a fleet on it, and Moorings beside it when asked.

Everything runs on this machine: etcd, kube-apiserver, kube-controller-manager and
kube-scheduler, then NATS, a solver and a publisher, and the benchmark that watches.
"""

from __future__ import annotations

import asyncio
import copy
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from runtime.bus.bus import Bus
from runtime.wire import BusSettings
from tests.lab import manifests
from tests.lab.cluster import Stack, gang_pod, is_bound
from tests.lab.controlplane import objects, programs, server
from tests.lab.controlplane.client import Json, Kube, named, path_of
from tests.lab.controlplane.options import Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.nats_server import LabServer
from tests.lab.services import Process, running

DRIVER = "bench.example.com"
"""Of every device; its DeviceClass is named after it."""
DEVICES_EACH = 8
IN_FLIGHT = 32
"""Requests of the benchmark itself at a time, as of the publisher."""
EMPTY_S = 100.0
WARM_S = 60.0
TEMPLATE = "one"
"""The ResourceClaimTemplate of one device."""


@contextmanager
def control_plane(options: Options) -> Iterator[ControlPlane]:
    """Run a control plane; its state and logs go with the block."""
    binaries = programs.built()
    if binaries is None:
        raise SystemExit(programs.NO_CONTROL_PLANE)
    with (
        tempfile.TemporaryDirectory() as folder,
        server.running(binaries, Path(folder), options) as running,
    ):
        yield running


def nodes(count: int) -> list[Json]:
    """Make nodes."""
    return [objects.node(f"node-{number}") for number in range(count)]


async def create_devices(kube: Kube, nodes: Iterable[Json]) -> None:
    """Give each node 8 devices, and create their class."""
    slices = [
        objects.resource_slice(
            DRIVER, node["metadata"]["name"], objects.devices(DEVICES_EACH)
        )
        for node in nodes
    ]
    await create(kube, [objects.device_class(DRIVER, DRIVER), *slices])


async def create_fleet(kube: Kube, count: int) -> None:
    """Create nodes of 8 devices, which nobody tends: pods stay bound."""
    made = nodes(count)
    await create(kube, made)
    await create_devices(kube, made)


async def create(kube: Kube, items: Iterable[Json]) -> None:
    """Create objects, so many at a time, in their order."""
    remaining = iter(items)

    async def work() -> None:
        for resource in remaining:
            await kube.create(resource)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.create_task(work())


@asynccontextmanager
async def namespace(kube: Kube) -> AsyncIterator[str]:
    """Make a namespace with a template of one device; afterwards no claim is left."""
    async with kube.namespace() as name:
        spec = objects.requests(DRIVER)
        await kube.create(objects.template(name, TEMPLATE, spec))
        try:
            yield name
        finally:
            await empty(kube, name)


async def empty(kube: Kube, name: str) -> None:
    """Delete what a namespace holds, and wait until its claims are gone."""
    options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    for version, kind in (
        ("batch/v1", "Job"),
        ("v1", "Pod"),
        (objects.RESOURCE, "ResourceClaim"),
    ):
        await kube.request("DELETE", path_of(named(version, kind, "", name)), options)

    async def is_empty() -> bool:
        return not await kube.list(objects.RESOURCE, "ResourceClaim", name)

    await until(is_empty, EMPTY_S)


def pods(namespace: str, sizes: Iterable[int], *, gated: bool) -> list[Json]:
    """Make pods of one device: for each size a gang, or a lone pod if it is 1."""
    made = []
    for number, size in enumerate(sizes):
        gang: dict[str, Any] = {"gang": f"g{number}", "size": size} if size > 1 else {}
        for index in range(size):
            name, templates = f"p{number}-{index}", {"r": TEMPLATE}
            made.append(
                gang_pod(namespace, name, templates=templates, **gang)
                if gated
                else objects.pod(namespace, name, templates=templates)
            )
    return made


@asynccontextmanager
async def moorings(
    plane: ControlPlane, kube: Kube, *, owned: bool = False
) -> AsyncIterator[tuple[Stack, Bus]]:
    """Run Moorings with its defaults; it has decided once, so everything was read.

    `owned`: the class of the devices is ours, so a policy of k8s/base prepares claims.
    """
    prepared = _claims_prepared(kube) if owned else nullcontext()
    async with prepared, _processes(plane) as stack:
        settings = BusSettings(servers=(stack.nats.url,), name="benchmark")
        async with Bus.open(settings) as bus:
            await bus.wait_connected(10)
            await _warm(kube)
            yield stack, bus


@asynccontextmanager
async def _claims_prepared(kube: Kube) -> AsyncIterator[None]:
    """Apply the policy that saves the publisher a write a pod, for our class."""
    policy = [
        manifest
        for manifest in copy.deepcopy(manifests.base())
        if manifest["metadata"]["name"] == "moorings-prepare-claims"
    ]
    for manifest in policy:
        for condition in manifest["spec"].get("matchConditions", ()):
            owned = condition["expression"].replace("''.split", f"'{DRIVER}'.split")
            condition["expression"] = owned
    await create(kube, policy)
    try:
        yield
    finally:
        for manifest in policy:
            await kube.delete(manifest)


@asynccontextmanager
async def _processes(plane: ControlPlane) -> AsyncIterator[Stack]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nats = LabServer(folder / "nats")
        nats.start()
        processes = {
            "solver": Process("solver", folder / "solver.log", SOLVER_SERVERS=nats.url),
            "publisher": Process(
                "publisher",
                folder / "publisher.log",
                PUBLISHER_SERVERS=nats.url,
                PUBLISHER_KUBECONFIG=str(plane.kubeconfig()),
                PUBLISHER_NAMESPACE="default",
            ),
        }
        try:
            async with running(*processes.values()):
                yield Stack(nats, processes)
        finally:
            nats.stop()


async def _warm(kube: Kube) -> None:
    async with namespace(kube) as name:
        await create(kube, pods(name, [1], gated=True))
        await kube.until(named("v1", "Pod", "p0-0", name), is_bound, WARM_S)


async def until(ask: Callable[[], Awaitable[bool]], within_s: float) -> None:
    """Wait until something holds that no watch tells."""
    async with asyncio.timeout(within_s):
        while not await ask():  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.1)
