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
async def example(
    kube: Kube, namespace: str, stack: Stack
) -> AsyncIterator[ExampleSite]:
    """The nodes and devices of the examples."""
    assert stack.nats.url
    site = ExampleSite(namespace)
    hosts = [
        objects.node(item["metadata"]["name"], item["metadata"]["labels"])
        for item in site.objects
        if item["kind"] == "Node"
    ]
    others = [item for item in site.objects if item["kind"] != "Node"]
    async with kubelet.running(kube, hosts):
        made = [await kube.create(item) for item in others]
        yield site
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
    example: ExampleSite, kube: Kube, namespace: str, name: str, count: int
) -> None:
    """Bound by kube-scheduler, with the devices that their claims hold then."""
    for item in example.read(name, namespace):
        await kube.create(item)
    pods = await running_pods(kube, namespace, count)
    CHECKS[name](example, [await placed(kube, pod) for pod in pods])
