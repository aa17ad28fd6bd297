"""Pods that their authors bound: they get devices by policy, else they are told why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from contracts.gang import GangPhase
from contracts.names import GANG
from moorings.bus_client import Client
from tests.lab import cluster
from tests.lab.cluster import Stack, create_pods, is_running, template
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet, allocated, users
from tests.lab.controlplane.server import ControlPlane
from tests.lab.waits import events_about, until_over, until_phase, until_told


@pytest.fixture(scope="module")
def stack(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Let the publisher allocate for them."""
    folder = tmp_path_factory.mktemp("stack")
    started = cluster.started(control_plane, folder, PUBLISHER_ALLOCATE_BOUND="true")
    with started as running:
        yield running


def bound(site: Fleet, name: str, node: str, devices: str, **fields: Any) -> Json:
    """Describe a pod on a node, with a mark of ours and without our gate."""
    return objects.pod(
        site.namespace,
        name,
        nodeName=node,
        labels={GANG: name},
        templates={"d": devices},
        **fields,
    )


async def test_a_bound_pod_gets_devices_of_its_node(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """It counts as what it is: others find its devices taken until it ends."""
    await template(site, "three", count=3)
    pod = await kube.create(bound(site, "bound", site.b, "three"))
    pod = await kube.until(pod, is_running)
    claim = await site.generated(pod)
    results = claim["status"]["allocation"]["devices"]["results"]
    assert {result["pool"] for result in results} == {site.b}
    assert users(claim) == ["bound"]
    await until_phase(client, site, "bound", GangPhase.RUNNING)
    waiting = await kube.create(bound(site, "late", site.b, "three"))
    await until_told(kube, waiting, "GangDevicesTaken")
    site.kubelets.finish(pod)
    await kube.until(waiting, is_running)
    await until_over(client, site, "bound")


async def test_pods_of_others_are_left_alone(site: Fleet, kube: Kube) -> None:
    """Without a mark, while no class is ours alone."""
    await template(site, "one", count=1)
    theirs = bound(site, "theirs", site.a, "one")
    theirs["metadata"]["labels"] = {}
    theirs = await kube.create(theirs)
    ours = await kube.create(bound(site, "ours", site.a, "one"))
    await kube.until(ours, is_running)
    assert not allocated(await site.generated(theirs))
    assert await events_about(kube, theirs) == []
    assert await create_pods(site, "train", range(1), "one", size=1)
