"""Beside the real Kueue: it gives quota, flavors and topology, we the devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from contracts.gang import GangPhase
from contracts.names import API_VERSION
from moorings.bus_client import Client
from publisher.kueue.objects import (
    ADMISSION_GATE,
    CONTROLLER,
    GATED_BY,
    read_kueue_workload,
)
from tests.lab import cluster, workloads
from tests.lab.cluster import Stack, is_running
from tests.lab.controlplane import fleet, objects, server
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.kubectl import Kubectl, serve_gangs
from tests.lab.controlplane.options import Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.kueue import manager, queues
from tests.lab.kueue.queues import DEVICES, FLAVOR, KUEUE, QUEUE, RACK
from tests.lab.services import eventually
from tests.lab.waits import until_phase

UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
RETRY_S = 8
FLAVORS = ("a100", "h100", "spot")
CLASS, TEMPLATE = "devices.example.com", "pair"
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
        PUBLISHER_KUEUE_RETRY_S=str(RETRY_S),
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
        check = queues.check(site.namespace, CONTROLLER)
        await site.publish(check)
        await kube.until(check, lambda c: queues.is_true(c, "Active"), 60.0)
        await site.publish(
            *(
                queues.flavor(named_here(site, name), {FLAVOR: name, **site.labels})
                for name in FLAVORS
            )
        )
        yield site


def named_here(site: Fleet, name: str) -> str:
    """Name what belongs to no namespace: Kueue keeps what is in use for a while."""
    return f"{site.namespace}-{name}"


async def open_queue(
    site: Fleet,
    name: str,
    devices: Mapping[str, int],
    cpus: Mapping[str, int] = {},
) -> None:
    """Open a queue with devices and CPUs by flavor; its check is ours."""
    wide = named_here(site, name)
    quotas = {flavor: {DEVICES: quota} for flavor, quota in devices.items()}
    quotas |= {flavor: {"cpu": quota} for flavor, quota in cpus.items()}
    by_flavor = {named_here(site, flavor): quota for flavor, quota in quotas.items()}
    queue = queues.cluster_queue(wide, by_flavor, site.namespace)
    await site.publish(queue)
    await site.kube.create(queues.local_queue(site.namespace, name, wide))
    await site.kube.until(queue, lambda q: queues.is_true(q, "Active"), 60.0)


def job(site: Fleet, name: str, pods: int, queue: str = "team", **more: Any) -> Json:
    """Describe a Job of a queue with two devices a pod."""
    marks = {"labels": {QUEUE: queue}}
    made = workloads.made_job(site, name, pods, TEMPLATE, marks)
    return made | more


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
    await open_queue(site, "team", {"h100": 8})
    made = job(site, "train", 4)
    await site.kube.create(made)
    workload = await workload_of(site, made)
    await site.kube.until(workload, lambda w: queues.is_true(w, "Admitted"), 60.0)
    await until_phase(client, site, workload["metadata"]["name"], GangPhase.RUNNING)
    pods = await running_pods(site, made, 4)
    assert {pod["spec"]["nodeName"] for pod in pods} == {site.b, site.c}


async def test_devices_are_held_on_nodes_of_the_flavor_alone(site: Fleet) -> None:
    """Whatever was free elsewhere."""
    for flavor in FLAVORS:
        await open_queue(site, flavor, {flavor: 4})
    made = [job(site, f"train-{flavor}", 2, flavor) for flavor in reversed(FLAVORS)]
    for each in made:
        await site.kube.create(each)
    for each in made:
        for pod in await running_pods(site, each, 2):
            node = pod["spec"]["nodeName"].removeprefix(f"{site.namespace}-")
            assert f"train-{NODES[node][FLAVOR]}" == each["metadata"]["name"]


async def test_pods_go_to_the_topology_domains_that_kueue_assigned(
    site: Fleet, client: Client
) -> None:
    """So many to each: Kueue's gate gives each pod its own.

    Kueue v0.19 fits no counted device into a topology, so that is of CPUs alone.
    """
    labels, levels = {FLAVOR: "h100", **site.labels}, site.namespace
    racks = queues.flavor(named_here(site, "racks"), labels, topologyName=levels)
    await site.publish(queues.topology(levels, RACK), racks)
    await open_queue(site, "team", {"h100": 16}, {"racks": 120})
    made = job(site, "train", 4)
    template = made["spec"]["template"]
    template["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "30"}
    template["metadata"]["annotations"] = {UNCONSTRAINED: "true"}
    await site.kube.create(made)
    workload = await workload_of(site, made)
    await until_phase(client, site, workload["metadata"]["name"], GangPhase.RUNNING)
    pods = await running_pods(site, made, 4)
    workload = await site.kube.get(workload)
    (assigned,) = workload["status"]["admission"]["podSetAssignments"]
    read = read_kueue_workload(workload).status.admission.pod_set_assignments[0]
    assert read.topology_assignment is not None, assigned
    wanted = {labels[RACK]: n for labels, n in read.topology_assignment.domains()}
    found = Counter(NODES[pod["spec"]["nodeName"][-1]][RACK] for pod in pods)
    assert found == wanted == {"one": 2, "two": 2}


async def test_what_does_not_fit_is_evicted_seldom(site: Fleet) -> None:
    """Twice as long after each time: Kueue counts, and neither drops what it keeps."""
    await open_queue(site, "team", {"h100": 100})
    made = job(site, "too-large", 20)
    await site.kube.create(made)
    workload = await workload_of(site, made)
    until = site.kube.until
    first = await until(workload, lambda w: _state(w)["state"] == "Retry", 60.0)
    assert "room for 4 of 20 pods" in _state(first)["message"]
    assert _state(first)["requeueAfterSeconds"] == RETRY_S
    await until(workload, lambda w: queues.evictions(w) == 1, 60.0)
    second = await until(workload, lambda w: _state(w)["state"] == "Retry", 60.0)
    assert _state(second)["requeueAfterSeconds"] == 2 * RETRY_S
    assert _state(second)["retryCount"] == queues.evictions(second) == 1
    gang = named(API_VERSION, "Gang", workload["metadata"]["name"], site.namespace)
    await site.kube.until_gone(gang, 60.0)


def _state(workload: Json) -> Json:
    (state,) = (workload.get("status") or {}).get("admissionChecks") or ({"state": ""},)
    return dict(state)


async def test_a_gated_job_comes_into_its_queue_once_devices_are_free(
    site: Fleet,
) -> None:
    """What waits for devices takes no quota; the next in the queue goes first."""
    await open_queue(site, "team", {"h100": 8})
    first = job(site, "first", 4)
    await site.kube.create(first)
    held = await running_pods(site, first, 4)
    gated = job(site, "second", 4)
    gated["metadata"]["annotations"] = {GATED_BY: ADMISSION_GATE}
    gated["spec"]["template"]["spec"]["nodeSelector"] = {FLAVOR: "h100"}
    await site.kube.create(gated)
    workload = await workload_of(site, gated)
    gang = named(API_VERSION, "Gang", workload["metadata"]["name"], site.namespace)
    await site.kube.until(gang, lambda g: "message" in (g.get("status") or {}), 60.0)
    workload = await site.kube.get(workload)
    assert workload["metadata"]["annotations"][GATED_BY] == ADMISSION_GATE
    assert not queues.is_true(workload, "QuotaReserved")
    for pod in held:
        site.kubelets.finish(pod)
    await running_pods(site, gated, 4)
    workload = await site.kube.get(workload)
    assert queues.evictions(workload) == 0
    assert GATED_BY not in (workload["metadata"].get("annotations") or {})
