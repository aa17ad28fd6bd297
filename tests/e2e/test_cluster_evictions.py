"""Pods and nodes that go away under a running gang."""

from __future__ import annotations

from contracts.gang import GangPhase
from moorings.bus_client import Client
from tests.lab.cluster import (
    GATES,
    LATE_GATE,
    create_pods,
    gang_pod,
    is_running,
    name_of,
    stateful_set,
    template,
    uid_of,
)
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.waits import pods_of, until_over, until_told


async def running_set(site: Fleet, kube: Kube) -> list[Json]:
    """Let a StatefulSet take all devices: one pod a node."""
    await template(site, count=4)
    await kube.create(stateful_set(site, "train", 2, "pair"))
    pods = await pods_of(site, "train", 2, is_running)
    return sorted(pods, key=lambda pod: str(pod["spec"]["nodeName"]))


async def until_replaced(site: Fleet, pod: Json) -> Json:
    """Wait for the pod that has the name of another now."""
    thing = named("v1", "Pod", name_of(pod), site.namespace)
    return await site.kube.until(thing, lambda p: uid_of(p) != uid_of(pod))


async def test_a_tainted_device_evicts_its_pod(site: Fleet, kube: Kube) -> None:
    first, second = await running_set(site, kube)
    rule = objects.taint_rule(site.namespace, site.driver, "NoExecute")
    rule["spec"]["deviceSelector"] = {"driver": site.driver, "pool": site.a}
    rule = await kube.create(rule)
    again = await until_replaced(site, first)
    await until_told(kube, again, "GangDevicesTainted")
    assert is_running(await kube.get(second))
    await kube.delete(rule)
    await kube.until(again, is_running)


async def test_a_tainted_node_evicts_its_pods(site: Fleet, kube: Kube) -> None:
    first, second = await running_set(site, kube)
    node = named("v1", "Node", site.a)
    taint = {"key": "example.com/down", "effect": "NoExecute"}
    await kube.patch(node, {"spec": {"taints": [taint]}})
    again = await until_replaced(site, first)
    await until_told(kube, again, "GangDevicesTaken")
    assert is_running(await kube.get(second))
    await kube.patch(node, {"spec": {"taints": None}})
    await kube.until(again, is_running)


async def test_a_node_that_is_gone_is_not_decided_for(site: Fleet, kube: Kube) -> None:
    """Its slices may outlive it for a while; pods pinned there would wait for ever."""
    first, second = await running_set(site, kube)
    node = await kube.get(named("v1", "Node", site.a))
    await kube.delete(node)
    await kube.delete(first, grace_s=0)
    again = await until_replaced(site, first)
    await until_told(kube, again, "GangDevicesTaken")
    assert is_running(await kube.get(second))
    meta = {"name": site.a, "labels": node["metadata"]["labels"]}
    await kube.create({**node, "metadata": meta})
    await kube.until(again, is_running)


async def test_a_pod_is_told_that_its_node_is_gone(site: Fleet, kube: Kube) -> None:
    """Its gate cannot be closed again; kube-scheduler alone would say little."""
    await template(site, count=4)
    pod = gang_pod(site.namespace, "late", templates={"d": "pair"})
    later = {"name": LATE_GATE}
    pod["spec"]["schedulingGates"] = [*GATES, later]
    await kube.create(pod)
    opened = await kube.until(pod, lambda p: p["spec"]["schedulingGates"] == [later])
    terms = opened["spec"]["affinity"]["nodeAffinity"]
    terms = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (node,) = terms[0]["matchFields"][0]["values"]
    await kube.delete(named("v1", "Node", node))
    note = await until_told(kube, opened, "GangPlacementLost")
    assert note == (
        f"1 of 1 pod cannot run where they were placed: late; gone are the nodes {node}"
    )


async def test_pods_deleted_by_force_give_back_their_devices(
    site: Fleet, kube: Kube, client: Client
) -> None:
    await template(site, count=4)
    await create_pods(site, "first", range(2), size=2)
    for pod in await pods_of(site, "first", 2, is_running):
        await kube.delete(pod, grace_s=0)
    (record,) = await until_over(client, site, "first")
    assert record.phase is GangPhase.COMPLETED
    await create_pods(site, "second", range(2), size=2)
    await pods_of(site, "second", 2, is_running)
