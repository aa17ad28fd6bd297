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
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.server import ControlPlane


@pytest.fixture(scope="module")
def stack(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """NATS, a solver and a publisher that own everything."""
    with cluster.started(control_plane, tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture
def kubectl(control_plane_programs: Path, control_plane: ControlPlane) -> Kubectl:
    """Give kubectl as the admin of the shared control plane."""
    return Kubectl(control_plane_programs / "kubectl", control_plane.kubeconfig())


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
