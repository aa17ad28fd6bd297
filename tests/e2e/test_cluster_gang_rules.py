"""Examples of docs/gangs.md on a real control plane, from objects to bound pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.lab import cluster
from tests.lab.cluster import Stack, is_running
from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.kubectl import Kubectl, serve_gangs
from tests.lab.controlplane.kubelet import Kubelets
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.controlplane.server import ControlPlane
from tests.lab.gang_examples import CHECKS, DeviceKey, ExamplePod, ExampleSite
from tests.lab.services import eventually

INDEX = "batch.kubernetes.io/job-completion-index"


@pytest.fixture(scope="module", autouse=True)
def stack(
    control_plane_programs: Path,
    control_plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """A stack that sees Gangs from the start."""
    kubeconfig = control_plane.kubeconfig()
    serve_gangs(Kubectl(control_plane_programs / "kubectl", kubeconfig))
    with cluster.started(control_plane, tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture
def example(namespace: str) -> ExampleSite:
    """The cluster of the examples."""
    return ExampleSite(namespace)


@pytest.fixture
async def kubelets(
    example: ExampleSite, kube: Kube, stack: Stack
) -> AsyncIterator[Kubelets]:
    """Its nodes and devices."""
    assert stack.nats.url
    hosts = [
        objects.node(item["metadata"]["name"], item["metadata"]["labels"])
        for item in example.objects
        if item["kind"] == "Node"
    ]
    others = [item for item in example.objects if item["kind"] != "Node"]
    async with kubelet.running(kube, hosts) as running:
        made = [await kube.create(item) for item in others]
        yield running
        for item in made:
            await kube.delete(item)


async def running_pods(kube: Kube, namespace: str, count: int) -> list[Json]:
    """Wait until so many pods run."""
    found: list[Json] = []

    async def all_run() -> bool:
        found[:] = filter(is_running, await kube.list("v1", "Pod", namespace))
        return len(found) == count

    await eventually(all_run, f"{count} pods of {namespace}", 60.0)
    return found


async def placed(kube: Kube, pod: Json) -> ExamplePod:
    """Read where a pod is bound, and what its claims hold."""
    meta = pod["metadata"]
    devices: list[DeviceKey] = []
    for status in pod["status"]["resourceClaimStatuses"]:
        claim = named(
            RESOURCE, "ResourceClaim", status["resourceClaimName"], meta["namespace"]
        )
        found = await kube.get(claim)
        devices += (
            (result["driver"], result["pool"], result["device"])
            for result in found["status"]["allocation"]["devices"]["results"]
        )
    index = meta["labels"][INDEX]
    return ExamplePod("worker", int(index), pod["spec"]["nodeName"], tuple(devices))


@pytest.mark.parametrize(
    ("name", "count"), [("pcie-root", 4), ("rack", 2), ("groups", 16)]
)
async def test_an_example_gets_what_its_rule_says(
    example: ExampleSite, kubelets: Kubelets, kube: Kube, name: str, count: int
) -> None:
    """Bound by kube-scheduler, with the devices that their claims hold then."""
    assert kubelets.nodes
    for item in example.read(name, example.prefix):
        await kube.create(item)
    pods = await running_pods(kube, example.prefix, count)
    CHECKS[name](example, [await placed(kube, pod) for pod in pods])


async def test_a_pod_that_replaces_another_stays_in_the_rack(
    example: ExampleSite, kubelets: Kubelets, kube: Kube
) -> None:
    """Decided alone, beside what runs; by names alone it would go elsewhere."""
    for item in example.read("rack", example.prefix):
        await kube.create(item)
    first, last = sorted(
        await running_pods(kube, example.prefix, 2),
        key=lambda pod: str(pod["spec"]["nodeName"]),
    )
    kubelets.finish(last, exit_code=1)
    await kube.until(last, lambda pod: pod["status"]["phase"] == "Failed")
    again = await running_pods(kube, example.prefix, 2)
    uids = {pod["metadata"]["uid"] for pod in again}
    assert first["metadata"]["uid"] in uids
    assert last["metadata"]["uid"] not in uids
    CHECKS["rack"](example, [await placed(kube, pod) for pod in again])
