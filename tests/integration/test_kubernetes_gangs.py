"""Kubernetes' own gangs (PodGroup, off by default) and device allocation.

It allocates pod by pod and never reconsiders (kubernetes/kubernetes#138765).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import release
from tests.lab.controlplane import fleet, objects, server
from tests.lab.controlplane.client import Json
from tests.lab.controlplane.fleet import Fleet, runs, waits
from tests.lab.controlplane.options import CONTROLLERS, NEXT, Options
from tests.lab.controlplane.server import ControlPlane

NATIVE = Options(
    feature_gates=("GenericWorkload=true",),
    runtime_config=("scheduling.k8s.io/v1beta1=true",),
    controllers=(*CONTROLLERS, "podgroup-protection-controller"),
)


def device(name: str, size: str, uses: int) -> Json:
    counters = {"widgets": {"value": str(uses)}}
    return {
        "name": name,
        "attributes": {"size": {"string": size}},
        "consumesCounters": [{"counterSet": "gpu", "counters": counters}],
    }


GPU = [
    device("whole", "whole", 2),
    device("half-0", "half", 1),
    device("half-1", "half", 1),
]
"""One device that is whole or two halves."""


async def publish_gpu(site: Fleet) -> None:
    """Publish the pool: counters stand in a slice of their own."""
    counters = [{"name": "gpu", "counters": {"widgets": {"value": "2"}}}]
    parts = objects.resource_slice(site.driver, site.a, GPU)
    shared = objects.resource_slice(site.driver, site.a, [])
    del shared["spec"]["devices"]
    shared["metadata"]["name"] += "-counters"
    shared["spec"]["sharedCounters"] = counters
    for item in (parts, shared):
        item["spec"]["pool"]["resourceSliceCount"] = 2
        await site.kube.create(item)


def whole_or_half(site: Fleet) -> Json:
    """Ask for the whole device, or else for a half."""

    def size(name: str) -> Json:
        expression = f'device.attributes["{site.driver}"].size == "{name}"'
        return {
            "name": name,
            "deviceClassName": site.device_class,
            "selectors": [{"cel": {"expression": expression}}],
        }

    return {
        "devices": {
            "requests": [{"name": "r", "firstAvailable": [size("whole"), size("half")]}]
        }
    }


async def gang(site: Fleet, name: str, *claims: Json | None, **spec: Any) -> list[Json]:
    """Create a PodGroup and a pod of it for each claim."""
    await site.kube.create(
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"namespace": site.namespace, "name": name},
            "spec": {"schedulingPolicy": {"gang": {"minCount": len(claims)}}},
        }
    )
    group = {"podGroupName": name}
    return [
        await site.create_pod(
            f"{name}-{i}", *([claim] if claim else []), schedulingGroup=group, **spec
        )
        for i, claim in enumerate(claims)
    ]


@pytest.fixture(scope="module")
def native(
    control_plane_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with Kubernetes' own gangs."""
    folder = tmp_path_factory.mktemp("native")
    with server.running(control_plane_programs, folder, NATIVE) as control_plane:
        yield control_plane


@pytest.fixture
async def site(native: ControlPlane) -> AsyncIterator[Fleet]:
    """One node with the one device."""
    async with (
        native.client() as kube,
        kube.namespace() as namespace,
        fleet.running(kube, namespace, ["a"], devices=()) as site,
    ):
        await publish_gpu(site)
        yield site


async def test_native_gang_takes_the_first_device_and_never_fits(site: Fleet) -> None:
    """Two halves would serve both pods; the first takes the whole each time.

    With the halves allocated for them both pods are bound, as a native gang too.
    """
    kube = site.kube
    claims = [
        await kube.create(objects.claim(site.namespace, f"c{i}", whole_or_half(site)))
        for i in range(2)
    ]
    pods = await gang(site, "g", *claims)
    told = [await kube.until(pod, waits("")) for pod in pods]
    why = "minCount (2) cannot be satisfied: 1 scheduled"
    if release() >= NEXT:
        why = 'parent pod group "g" is unschedulable'
    assert any(waits(why)(pod) for pod in told)
    assert any(waits("1 cannot allocate all claims")(pod) for pod in told)
    for claim, half in zip(claims, ("half-0", "half-1"), strict=True):
        await site.allocate(claim, site.a, half, result={"request": "r/half"})
    for pod in pods:
        await kube.until(pod, runs)


async def test_failed_cycle_of_a_native_gang_strips_reservations(site: Fleet) -> None:
    """Unreserve again: one member that fits nowhere costs the others theirs."""
    kube = site.kube
    ours = await kube.create(objects.claim(site.namespace, "c", whole_or_half(site)))
    one, two = await gang(site, "g", ours, None, gated=True)
    ours = await site.allocate(
        ours, site.a, "whole", result={"request": "r/whole"}, pods=[one]
    )
    await kube.patch(two, {"spec": {"nodeSelector": {"nowhere": "yes"}}})
    for pod in (one, two):
        await site.open_gate(pod)
    await site.failed(two, times=1)
    left = await kube.until(ours, lambda c: "reservedFor" not in c["status"])
    assert left["status"]["allocation"] == ours["status"]["allocation"]
