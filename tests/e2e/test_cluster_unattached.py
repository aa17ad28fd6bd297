"""A device cannot be attached to the node that its pod is pinned to (KEP-5007)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from contracts.names import RECOVERY
from tests.conftest import OwnControlPlane
from tests.lab import cluster
from tests.lab.bound import report_condition
from tests.lab.cluster import (
    exists,
    is_bound,
    is_running,
    job,
    name_of,
    stateful_set,
    template,
    uid_of,
)
from tests.lab.controlplane import fleet
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet, allocated
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.controlplane.options import Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.waits import pods_of, until_told

ATTACHED, FAILED = "example.com/attached", "example.com/failed"
DEVICE: Json = {
    "name": "gpu-0",
    "bindingConditions": [ATTACHED],
    "bindingFailureConditions": [FAILED],
}


@asynccontextmanager
async def owned(
    plane: ControlPlane, kube: Kube, namespace: str, folder: Path
) -> AsyncIterator[Fleet]:
    """Run three nodes, each with a device of an owned driver that must be attached."""
    nodes = ("a", "b", "c")
    async with (
        fleet.running(kube, namespace, nodes, [DEVICE]) as site,
        cluster.stack(plane, folder, PUBLISHER_OWNED_DRIVERS=site.driver),
    ):
        rule = named(RESOURCE, "DeviceTaintRule", f"moorings-owned-{site.driver}")
        await kube.until(rule, exists)
        await template(site, count=1)
        yield site


@pytest.fixture
async def site(
    kube: Kube, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> AsyncIterator[Fleet]:
    """Nodes on the shared control plane."""
    async with owned(control_plane, kube, namespace, tmp_path) as site:
        yield site


async def held(site: Fleet, pod: Json) -> tuple[str, Json]:
    """Wait until the claim of a pod has a device and its gate is open.

    Gives its node, and the claim.
    """
    claim = await site.kube.until(await site.generated(pod), allocated)
    await site.kube.until(pod, lambda now: not now["spec"].get("schedulingGates"))
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    return str(result["pool"]), claim


async def attach(site: Fleet, *pods: Json) -> None:
    """Attach the devices of pods, so that they run."""
    for pod in pods:
        _, claim = await held(site, pod)
        await report_condition(site, claim, ATTACHED)


async def test_a_gang_is_made_anew_on_another_node(site: Fleet, kube: Kube) -> None:
    """All of it, though one of its pods runs already."""
    made = job(site, "train", 2, "pair", backoffLimit=6)
    made["spec"]["template"]["metadata"]["annotations"][RECOVERY] = "Recreate"
    await kube.create(made)
    first, second = await pods_of(site, "train", 2, exists)
    await attach(site, first)
    await kube.until(first, is_running)
    node, claim = await held(site, second)
    await report_condition(site, claim, FAILED)
    note = await until_told(kube, second, "GangDeviceNotAttached")
    assert f"{site.driver}/{node}/gpu-0" in note
    assert f"condition {FAILED}: Tried: as the test says" in note
    before = {uid_of(first), uid_of(second)}
    again = await pods_of(site, "train", 2, lambda pod: uid_of(pod) not in before)
    assert node not in [(await held(site, pod))[0] for pod in again]
    await attach(site, *again)
    for pod in again:
        await kube.until(pod, is_running)


async def test_an_author_is_told_to_delete_the_pod(site: Fleet, kube: Kube) -> None:
    """Also once kube-scheduler has freed the claim, and its node has no other."""
    await kube.create(stateful_set(site, "serve", 1, "pair"))
    (pod,) = await pods_of(site, "serve", 1, exists)
    node, claim = await held(site, pod)
    slice_ = named(RESOURCE, "ResourceSlice", f"{node}-{site.driver}")
    taint = {"key": "example.com/unreachable", "effect": "NoSchedule"}
    await kube.patch(slice_, {"spec": {"devices": [{**DEVICE, "taints": [taint]}]}})
    await report_condition(site, claim, FAILED)
    note = await until_told(kube, pod, "GangDeviceNotAttached")
    assert f"{site.driver}/{node}/gpu-0" in note
    assert "delete it, and its replacement avoids the node" in note
    await until_told(kube, pod, "GangDevicesTainted")
    assert not allocated(await kube.get(claim))
    assert not is_bound(await kube.get(pod))
    await kube.delete(pod, grace_s=0)
    (again,) = await pods_of(site, "serve", 1, lambda p: uid_of(p) != uid_of(pod))
    elsewhere, _ = await held(site, again)
    assert (name_of(again), elsewhere != node) == (name_of(pod), True)
    await attach(site, again)
    await kube.until(again, is_running)


async def test_an_author_is_told_of_a_driver_that_says_nothing(
    own_control_plane: OwnControlPlane, tmp_path: Path
) -> None:
    """As soon as kube-scheduler gives up waiting, after 10 minutes by default."""
    plane = own_control_plane(Options(binding_timeout="3s"))
    async with (
        plane.client() as kube,
        kube.namespace() as namespace,
        owned(plane, kube, namespace, tmp_path) as site,
    ):
        await kube.create(stateful_set(site, "serve", 1, "pair"))
        (pod,) = await pods_of(site, "serve", 1, exists)
        node, _ = await held(site, pod)
        note = await until_told(kube, pod, "GangDeviceNotAttached")
        assert f"{site.driver}/{node}/gpu-0" in note
        assert "device binding timeout" in note
