"""One stack beside the shared control plane for all tests of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from moorings.bus_client import Client, open_client
from tests.lab import cluster
from tests.lab.cluster import Stack
from tests.lab.controlplane import fleet
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.kubectl import Kubectl, serve_gangs
from tests.lab.controlplane.server import ControlPlane
from tests.lab.workloads import list_queue_kinds


@pytest.fixture(scope="module")
def served() -> None:
    """See that what a module needs is served before its stack starts: nothing more."""


@pytest.fixture(scope="module")
def stack(
    served: None, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """NATS, a solver and a publisher that own everything, and see what is served."""
    assert served is None
    with cluster.started(control_plane, tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(control_plane_programs: Path, control_plane: ControlPlane) -> Kubectl:
    """Give kubectl as the admin of the shared control plane."""
    return Kubectl(control_plane_programs / "kubectl", control_plane.kubeconfig())


@pytest.fixture(scope="module")
def gangs(kubectl: Kubectl) -> None:
    """See that Gangs are served."""
    serve_gangs(kubectl)


@pytest.fixture(scope="module")
def queues(kubectl: Kubectl) -> Iterator[None]:
    """Serve Kueue's queues while a module runs."""
    crds = list_queue_kinds()
    kubectl("apply", "-f", "-", given=crds)
    for crd in crds:
        name = crd["metadata"]["name"]
        kubectl("wait", "--for=condition=Established", f"crd/{name}")
    yield
    kubectl("delete", "-f", "-", given=crds)


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[Client]:
    """A person's way to the bus of the stack."""
    async with open_client(stack.nats.url, "local") as client:
        yield client


@pytest.fixture
async def site(kube: Kube, namespace: str, stack: Stack) -> AsyncIterator[Fleet]:
    """Two nodes with four devices each, named after the test's own namespace."""
    assert stack.nats.url
    async with fleet.running(kube, namespace) as site:
        yield site


@pytest.fixture
async def bare(kube: Kube, namespace: str, stack: Stack) -> AsyncIterator[Fleet]:
    """Three nodes without devices and a class of all that the test publishes."""
    assert stack.nats.url
    async with fleet.running(kube, namespace, ("a", "b", "c"), devices=()) as site:
        yield site
