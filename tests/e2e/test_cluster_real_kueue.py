"""Beside the real Kueue: it gives quota, flavors and topology, we the devices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contracts.gang import GangPhase
from moorings.client import Client
from publisher.kueue.objects import CONTROLLER
from tests.lab import cluster, workloads
from tests.lab.cluster import Stack, is_running
from tests.lab.controlplane import fleet, objects, server
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.kubectl import Kubectl, serve_gangs
from tests.lab.controlplane.options import Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.kueue import manager, queues
from tests.lab.kueue.queues import DEVICES, FLAVOR, KUEUE, QUEUE, RACK
from tests.lab.services import eventually
from tests.lab.waits import until_phase

CHECK, CLASS, TEMPLATE = "devices", "devices.example.com", "pair"
NODES = {
    "a": {FLAVOR: "a100", RACK: "one"},
    "b": {FLAVOR: "h100", RACK: "one"},
    "c": {FLAVOR: "h100", RACK: "two"},
    "d": {FLAVOR: "spot", RACK: "two"},
}
"""Each with four devices."""


@pytest.fixture(scope="module")
def control_plane(
    control_plane_programs: Path,
    kueue_programs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """A control plane of this module, as Kueue's webhooks are about all pods."""
    folder = tmp_path_factory.mktemp("controlplane")
    with server.running(control_plane_programs, folder, Options()) as running:
        kubectl = Kubectl(control_plane_programs / "kubectl", running.kubeconfig())
        serve_gangs(kubectl)
        with manager.running(kueue_programs, running, **queues.configuration(CLASS)):
            yield running


@pytest.fixture(scope="module")
def stack(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A stack that answers for AdmissionChecks, and gives quota back soon."""
    with cluster.started(
        control_plane,
        tmp_path_factory.mktemp("stack"),
        PUBLISHER_KUEUE_CHECKS="true",
        PUBLISHER_KUEUE_PATIENCE_S="3",
    ) as running:
        yield running


@pytest.fixture
async def site(kube: Kube, namespace: str, stack: Stack) -> AsyncIterator[Fleet]:
    """Nodes of three flavors in two racks, and a class that Kueue counts."""
    assert stack.nats.url
    async with fleet.running(kube, namespace, tuple(NODES), labels=NODES) as site:
        site.device_class = CLASS
        await site.publish(objects.device_class(CLASS, site.driver))
        await cluster.template(site, TEMPLATE, count=2)
        await site.publish(
            *(
                queues.flavor(name, {FLAVOR: name, **site.labels})
                for name in ("a100", "h100", "spot")
            )
        )
        yield site


async def open_queue(site: Fleet, **quotas: int) -> None:
    """Give the namespace a queue with devices by flavor, and a check that is ours."""
    name, check = site.namespace, queues.check(CHECK, CONTROLLER)
    await site.publish(check)
    await site.kube.until(check, lambda c: queues.is_true(c, "Active"), 60.0)
    by_flavor = {flavor: {DEVICES: quota} for flavor, quota in quotas.items()}
    queue = queues.cluster_queue(name, by_flavor, CHECK)
    await site.publish(queue)
    await site.kube.create(queues.local_queue(site.namespace, "team", name))
    await site.kube.until(queue, lambda q: queues.is_true(q, "Active"), 60.0)


def job(site: Fleet, name: str, pods: int, **annotations: str) -> Json:
    """Describe a Job of the queue with two devices a pod."""
    marks = {"labels": {QUEUE: "team"}}
    made = workloads.made_job(site, name, pods, TEMPLATE, marks)
    made["spec"]["template"]["metadata"]["annotations"] = annotations
    return made


async def workload_of(site: Fleet, job: Json) -> Json:
    """Wait for the Workload that Kueue makes of a Job."""
    found: list[Json] = []

    async def there() -> bool:
        listed = await site.kube.list(KUEUE, "Workload", site.namespace)
        found[:] = [
            one
            for one in listed
            for owner in one["metadata"]["ownerReferences"]
            if owner["name"] == job["metadata"]["name"]
        ]
        return bool(found)

    await eventually(there, f"a Workload of {job['metadata']['name']}", 60.0)
    return found[0]


async def running_pods(site: Fleet, job: Json, count: int) -> list[Json]:
    """Wait until so many pods of a Job run."""
    selected = {"labelSelector": f"job-name={job['metadata']['name']}"}
    found: list[Json] = []

    async def run() -> bool:
        pods = await site.kube.list("v1", "Pod", site.namespace, **selected)
        found[:] = [pod for pod in pods if is_running(pod)]
        return len(found) == count

    await eventually(run, f"{count} pods of {job['metadata']['name']} run", 90.0)
    return found


async def test_kueue_starts_a_job_once_its_devices_are_held(
    site: Fleet, client: Client
) -> None:
    await open_queue(site, h100=8)
    made = job(site, "train", 4)
    await site.kube.create(made)
    workload = await workload_of(site, made)
    await site.kube.until(workload, lambda w: queues.is_true(w, "Admitted"), 60.0)
    await until_phase(client, site, workload["metadata"]["name"], GangPhase.RUNNING)
    pods = await running_pods(site, made, 4)
    assert {pod["spec"]["nodeName"] for pod in pods} == {site.b, site.c}
