"""Moorings beside a real control plane: NATS, solver and publisher as processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from moorings.nats import LocalServer
from publisher.names import GANG, GANG_SIZE, GATE, MEMBER
from tests.controlplane import objects
from tests.controlplane.client import Json, Kube, named
from tests.controlplane.server import ControlPlane
from tests.services import Process, running, solver

GATES = [{"name": GATE}]


class Stack:
    """The processes, by name."""

    def __init__(self, nats: LocalServer, processes: Mapping[str, Process]) -> None:
        self.nats = nats
        self.processes = processes

    def __getitem__(self, name: str) -> Process:
        return self.processes[name]


def publisher(
    nats: LocalServer,
    control_plane: ControlPlane,
    folder: Path,
    name: str = "one",
    **more: str,
) -> Process:
    """Make a publisher that writes to a cluster."""
    variables = {
        "PUBLISHER_SERVERS": nats.url,
        "PUBLISHER_KUBECONFIG": str(control_plane.kubeconfig()),
        "PUBLISHER_NAMESPACE": "default",
        "PUBLISHER_NAME": name,
        "PUBLISHER_LEASE_S": "2",
        **more,
    }
    return Process("publisher", folder / f"publisher-{name}.log", **variables)


@asynccontextmanager
async def stack(
    control_plane: ControlPlane, folder: Path, *, standby: bool = False, **more: str
) -> AsyncIterator[Stack]:
    """Run NATS, one solver and one or two publishers while the block runs."""
    nats = LocalServer(folder / "nats")
    nats.start()
    processes = {
        "solver": solver(nats.url, folder),
        "publisher": publisher(nats, control_plane, folder, **more),
    }
    if standby:
        second = publisher(nats, control_plane, folder, "two", **more)
        processes["standby"] = second
    try:
        async with running(*processes.values()):
            yield Stack(nats, processes)
    finally:
        nats.stop()


async def fleet(
    kube: Kube, prefix: str, nodes: int, devices: int, **allocatable: str
) -> list[str]:
    """Create nodes with devices of one driver, and its class `<prefix>.example.com`."""
    driver = f"{prefix}.example.com"
    names = [f"{prefix}-{number}" for number in range(nodes)]
    await kube.create(objects.device_class(driver, driver))
    for name in names:
        await kube.create(objects.node(name, {}, **allocatable))
        await kube.create(
            objects.resource_slice(driver, name, objects.devices(devices))
        )
    return names


def gang_pod(
    namespace: str,
    name: str,
    *,
    gang: str = "",
    size: int = 0,
    member: str = "",
    **fields: Any,
) -> Json:
    """Make a pod that waits at our gate, of a gang by labels or alone."""
    labels = {GANG: gang} if gang else {}
    if member:
        labels[MEMBER] = member
    annotations = {GANG_SIZE: str(size)} if size else {}
    return objects.pod(
        namespace,
        name,
        labels=labels,
        annotations=annotations,
        schedulingGates=GATES,
        **fields,
    )


async def pods_until(
    kube: Kube,
    namespace: str,
    names: Sequence[str],
    holds: Callable[[Json], bool],
    within_s: float = 30.0,
) -> list[Json]:
    """Wait until something holds of each pod; gives them as they are then."""
    pods = (named("v1", "Pod", name, namespace) for name in names)
    waits = (kube.until(pod, holds, within_s) for pod in pods)
    return list(await asyncio.gather(*waits))


def is_bound(pod: Json) -> bool:
    """Whether kube-scheduler has bound the pod."""
    return bool(pod["spec"].get("nodeName"))


def is_running(pod: Json) -> bool:
    """Whether the pod runs."""
    return bool(pod.get("status", {}).get("phase") == "Running")
