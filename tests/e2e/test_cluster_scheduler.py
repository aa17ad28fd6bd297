"""Moorings and kube-scheduler side by side: whose is what, and who comes first."""

from __future__ import annotations

import asyncio
import re

from contracts.gang import GangPhase
from moorings.bus_client import Client
from tests.lab.cluster import (
    GATES,
    LATE_GATE,
    create_pods,
    gang_pod,
    is_running,
    name_of,
    template,
)
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.services import eventually
from tests.lab.waits import events_about, pods_of, until_phase, until_told

PODS = 8
ADMIN_ACCESS = (
    "adminAccess: Forbidden: admin access to devices requires the "
    "`resource.kubernetes.io/admin-access: true` label on the containing namespace"
)
WRITES = re.compile(
    r'^apiserver_request_total\{.*resource="(pods|resourceclaims)".*'
    r'subresource="(status|)",verb="PATCH".*\} (\S+)$',
    re.MULTILINE,
)


async def patches(kube: Kube) -> dict[str, int]:
    """Count the patches that the API server has answered, by what they changed."""
    found: dict[str, int] = {}
    for resource, subresource, count in WRITES.findall(await kube.text("/metrics")):
        key = "/".join(filter(None, (resource, subresource)))
        found[key] = found.get(key, 0) + int(float(count))
    return found


async def quiet_patches(kube: Kube) -> dict[str, int]:
    """Count them once what earlier tests left behind has been cleared away."""
    found: dict[str, int] = {}

    async def quiet() -> bool:
        before = dict(found)
        found.update(await patches(kube))
        await asyncio.sleep(0.5)
        return before == found

    await eventually(quiet, "nobody else writes")
    return found


async def test_an_undisturbed_pod_costs_three_writes(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Finalizer, allocation and gate; nobody is told anything."""
    await template(site, count=1)
    before = await quiet_patches(kube)
    pods = await create_pods(site, "train", range(PODS), size=PODS)
    await until_phase(client, site, "train", GangPhase.RUNNING)
    after = await patches(kube)
    costs = {key: count - before.get(key, 0) for key, count in after.items()}
    wanted = ("resourceclaims", "resourceclaims/status", "pods")
    assert [costs[key] for key in wanted] == [PODS, PODS, PODS]
    await pods_of(site, "train", PODS, is_running)
    for pod in pods:
        assert await events_about(kube, pod) == []


async def test_a_pinned_pod_keeps_its_devices_on_a_cordoned_node(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Without the pin kube-scheduler would take others elsewhere: trap 2.

    A gate of its author holds the pod until kube-scheduler knows of the cordon.
    """
    await template(site, count=2)
    described = gang_pod(
        site.namespace, "train-0", gang="train", size=1, templates={"d": "pair"}
    )
    described["spec"]["schedulingGates"] = [*GATES, {"name": LATE_GATE}]
    pod = await kube.create(described)
    await until_phase(client, site, "train", GangPhase.RUNNING)
    claim = await site.generated(pod)
    results = claim["status"]["allocation"]["devices"]["results"]
    node = named("v1", "Node", results[0]["pool"])
    await kube.patch(node, {"spec": {"unschedulable": True}})
    await site.controller_manager_caught_up()
    await kube.patch(pod, [{"op": "remove", "path": "/spec/schedulingGates"}])
    await site.failed(pod, times=1)
    assert await kube.get(claim) == claim
    await kube.patch(node, {"spec": {"unschedulable": None}})
    await kube.until(pod, is_running)
    assert (await kube.get(claim))["status"] == claim["status"]


async def label(site: Fleet, value: str | None) -> None:
    """Allow admin access in the namespace of a site, or not (None)."""
    labels = {"resource.kubernetes.io/admin-access": value}
    space = named("v1", "Namespace", site.namespace)
    await site.kube.patch(space, {"metadata": {"labels": labels}})


async def test_admin_access_takes_nothing(site: Fleet, kube: Kube) -> None:
    """A monitor of all devices comes while others hold them, and stays."""
    await label(site, "true")
    await template(site, "all", count=4)
    spec = objects.requests(site.device_class, 4, adminAccess=True)
    await kube.create(objects.template(site.namespace, "watch", spec))
    await create_pods(site, "first", range(2), "all", size=2)
    first = await pods_of(site, "first", 2, is_running)
    await create_pods(site, "monitor", range(2), "watch", size=2)
    await pods_of(site, "monitor", 2, is_running)
    for pod in first:
        site.kubelets.finish(pod)
    await create_pods(site, "second", range(2), "all", size=2)
    await pods_of(site, "second", 2, is_running)


async def test_admin_access_is_refused_in_other_namespaces(
    site: Fleet, kube: Kube
) -> None:
    """The author of the pod reads what the API server says, until it is allowed."""
    await label(site, "true")
    claim = await site.claim("watch", adminAccess=True)
    await label(site, None)
    pod = gang_pod(site.namespace, "monitor", claims={"d": name_of(claim)})
    pod = await kube.create(pod)
    note = await until_told(kube, pod, "GangAllocationRefused")
    assert ADMIN_ACCESS in note
    await label(site, "true")
    await kube.until(pod, is_running)
