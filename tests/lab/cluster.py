"""Moorings beside a real control plane: NATS, solver and publisher as processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from contracts.features import GATES as DRA_GATES
from contracts.names import GANG, GANG_SIZE, GATE, MEMBER
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.server import ControlPlane
from tests.lab.nats_server import LabServer
from tests.lab.publisher_rights import SYSTEM, publisher_kubeconfig
from tests.lab.services import Process, solver

GATES = [{"name": GATE}]
LATE_GATE = "example.com/later"
"""A gate of others that the publisher is told opens after devices are decided."""
READY_S = 120.0


class Stack:
    """The processes, by name."""

    def __init__(self, nats: LabServer, processes: Mapping[str, Process]) -> None:
        self.nats = nats
        self.processes = processes

    def __getitem__(self, name: str) -> Process:
        return self.processes[name]

    @property
    def is_ready(self) -> bool:
        """Whether a solver decides and a publisher writes."""
        publishers = [name for name in self.processes if name != "solver"]
        return '"epoch.claimed"' in self["solver"].log() and any(
            '"lease.acquired"' in self[name].log() for name in publishers
        )

    def wait_ready(self) -> None:
        """Wait until all streams are there and everything is followed."""
        deadline = time.monotonic() + READY_S
        while not self.is_ready:
            assert time.monotonic() < deadline, f"not ready within {READY_S} s"
            time.sleep(0.05)


def publisher(
    servers: str,
    control_plane: ControlPlane,
    folder: Path,
    name: str = "one",
    **more: str,
) -> Process:
    """Make a publisher that writes to a cluster with the rights of k8s/base."""
    variables = {
        "PUBLISHER_SERVERS": servers,
        "PUBLISHER_KUBECONFIG": str(publisher_kubeconfig(control_plane)),
        "PUBLISHER_NAMESPACE": SYSTEM,
        "PUBLISHER_NAME": name,
        "PUBLISHER_LEASE_S": "2",
        "PUBLISHER_LATE_GATES": LATE_GATE,
        **more,
    }
    return Process("publisher", folder / f"publisher-{name}.log", **variables)


@contextmanager
def started(
    control_plane: ControlPlane, folder: Path, *, standby: bool = False, **more: str
) -> Iterator[Stack]:
    """Run NATS, a solver and one or two publishers; they work when the block begins."""
    with _starting(control_plane, folder, standby=standby, **more) as running:
        running.wait_ready()
        yield running


@contextmanager
def _starting(
    control_plane: ControlPlane,
    folder: Path,
    *,
    standby: bool,
    traces: str = "",
    **more: str,
) -> Iterator[Stack]:
    """Run NATS, one solver and one or two publishers while the block runs.

    The solver is told the feature gates of the control plane. `traces` is where both
    send their traces; `more` are other settings of either.
    """
    nats = LabServer(folder / "nats")
    nats.start()
    more["PUBLISHER_TRACES_ENDPOINT"] = traces
    changed = control_plane.options.feature_gates
    gates = (gate for gate in changed if gate.partition("=")[0] in DRA_GATES)
    of_solver = {name for name in more if name.startswith("SOLVER_")}
    settings = {name: more.pop(name) for name in of_solver}
    processes = {
        "solver": solver(
            nats.url,
            folder,
            SOLVER_FEATURE_GATES=",".join(gates),
            SOLVER_TRACES_ENDPOINT=traces,
            **settings,
        ),
        "publisher": publisher(nats.url, control_plane, folder, **more),
    }
    if standby:
        second = publisher(nats.url, control_plane, folder, "two", **more)
        processes["standby"] = second
    try:
        for process in processes.values():
            process.start()
        yield Stack(nats, processes)
    finally:
        for process in processes.values():
            process.close()
        nats.stop()


@asynccontextmanager
async def stack(
    control_plane: ControlPlane, folder: Path, *, standby: bool = False, **more: str
) -> AsyncIterator[Stack]:
    """Run the same for one test, while its loop goes on; also with two publishers."""
    with _starting(control_plane, folder, standby=standby, **more) as running:
        await asyncio.to_thread(running.wait_ready)
        yield running


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


async def template(site: Fleet, name: str = "pair", *, count: int) -> None:
    """Create a template of claims for some devices each."""
    spec = objects.requests(site.device_class, count)
    await site.kube.create(objects.template(site.namespace, name, spec))


async def create_pods(
    site: Fleet,
    gang: str,
    numbers: Iterable[int],
    devices: str = "pair",
    *,
    size: int = 0,
    **fields: Any,
) -> list[Json]:
    """Create pods of a gang, `<gang>-<number>` each, by template."""
    pods = (
        gang_pod(
            site.namespace,
            f"{gang}-{number}",
            gang=gang,
            size=size,
            templates={"d": devices},
            **fields,
        )
        for number in numbers
    )
    return list(await asyncio.gather(*map(site.kube.create, pods)))


def job(site: Fleet, name: str, pods: int, devices: str, **spec: object) -> Json:
    """Describe a Job whose pods are one gang."""
    pod = gang_pod(site.namespace, "", gang=name, size=pods, templates={"d": devices})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": site.namespace},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {
                "metadata": {
                    "labels": pod["metadata"]["labels"],
                    "annotations": pod["metadata"]["annotations"],
                },
                "spec": pod["spec"],
            },
            **spec,
        },
    }


def stateful_set(site: Fleet, name: str, pods: int, devices: str) -> Json:
    """Describe a StatefulSet that makes its pods all at once."""
    made = job(site, name, pods, devices)
    template = made["spec"]["template"]
    template["spec"]["restartPolicy"] = "Always"
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": made["metadata"],
        "spec": {
            "replicas": pods,
            "podManagementPolicy": "Parallel",
            "serviceName": name,
            "selector": {"matchLabels": {GANG: name}},
            "template": template,
        },
    }


async def pods_until(
    kube: Kube,
    namespace: str,
    names: Sequence[str],
    holds: Callable[[Json], bool],
    within_s: float = 120.0,
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


def uid_of(resource: Json) -> str:
    """Give an object's uid."""
    return str(resource["metadata"]["uid"])


def name_of(resource: Json) -> str:
    """Give an object's name."""
    return str(resource["metadata"]["name"])


def exists(_: Json) -> bool:
    """Whether an object is there."""
    return True
