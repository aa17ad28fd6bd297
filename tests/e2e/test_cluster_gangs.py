"""Gangs on a real control plane: allocated whole, bound by the stock kube-scheduler."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import release
from tests.lab import cluster
from tests.lab.cluster import Stack, gang_pod, is_running, pods_until
from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.options import NEWEST
from tests.lab.controlplane.server import ControlPlane

SERVED = {"1.32": ("v1beta1",), "1.33": ("v1beta2", "v1beta1")}.get(
    release(), ("v1",) if release() >= NEWEST else ("v1", "v1beta2", "v1beta1")
)
"""Older releases serve the versions before v1 too, as the tests start them."""


@pytest.fixture(params=SERVED)
async def stack(
    request: pytest.FixtureRequest, control_plane: ControlPlane, tmp_path: Path
) -> AsyncIterator[Stack]:
    """A publisher that speaks just one version of resource.k8s.io."""
    version = {"PUBLISHER_API_VERSIONS": request.param}
    async with cluster.stack(control_plane, tmp_path, **version) as running:
        yield running


@pytest.mark.every_release
async def test_a_gang_by_labels_is_allocated_whole_and_runs(
    kube: Kube, namespace: str, stack: Stack
) -> None:
    """Four pods of two devices each fit on two nodes of four only all together.

    Nobody tells the solver which release it is: it follows the API server's.
    """
    prefix = namespace
    driver = f"{prefix}.example.com"
    await kube.create(objects.device_class(driver, driver))
    nodes = [objects.node(f"{prefix}-{number}") for number in range(2)]
    async with kubelet.running(kube, nodes):
        for item in nodes:
            name = item["metadata"]["name"]
            slice_ = objects.resource_slice(driver, name, objects.devices(4))
            await kube.create(slice_)
        spec = objects.requests(driver, 2)
        await kube.create(objects.template(namespace, "pair", spec))
        names = [f"train-{index}" for index in range(4)]
        for name in names:
            pod = gang_pod(
                namespace, name, gang="train", size=4, templates={"gpus": "pair"}
            )
            await kube.create(pod)
        pods = await pods_until(kube, namespace, names, is_running)
        assert {pod["spec"]["nodeName"] for pod in pods} == {
            item["metadata"]["name"] for item in nodes
        }
    (followed,) = [
        line for line in stack["solver"].log().splitlines() if "release." in line
    ]
    assert "release.followed" in followed
    assert f'"cluster": "{release()}"' in followed
