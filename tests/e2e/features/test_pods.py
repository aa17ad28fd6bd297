"""What pods ask of their nodes besides devices, and what makes and replaces them."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.names import GANG
from tests.lab.bound import asks, create_gang, exactly, run_gang, until_bound
from tests.lab.cluster import gang_pod, is_running, name_of
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet, only
from tests.lab.services import eventually
from tests.lab.waits import pods_of, until_told

HOSTNAME = "kubernetes.io/hostname"


async def publish(site: Fleet, count: int, *nodes: str) -> None:
    """Publish equal devices of some nodes."""
    slices = (
        objects.resource_slice(site.driver, node, objects.devices(count))
        for node in nodes
    )
    await site.publish(*slices)


def within(*names: str) -> Json:
    """Make the requirement of nodes by label."""
    return {"key": HOSTNAME, "operator": "In", "values": list(names)}


@pytest.mark.every_release
async def test_what_a_pod_asks_of_its_node_stays_beside_the_pin(bare: Fleet) -> None:
    """Terms of which one must hold are all narrowed; nothing is added or lost."""
    await publish(bare, 1, *bare.nodes)
    required = [
        {"matchExpressions": [within(bare.b)]},
        {"matchExpressions": [within(bare.c)], "matchFields": [only(bare.c)]},
    ]
    preferred = [{"weight": 1, "preference": {"matchExpressions": [within(bare.b)]}}]
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": required
        },
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }
    spec = asks(exactly(bare.device_class))
    pods = await run_gang(bare, "two", spec, 2, affinity={"nodeAffinity": affinity})
    assert {pod.node for pod in pods} == {bare.b, bare.c}
    for pod in pods:
        of_nodes = pod.pod["spec"]["affinity"]["nodeAffinity"]
        terms = of_nodes["requiredDuringSchedulingIgnoredDuringExecution"]
        pin = only(pod.node)
        fields = [only(bare.c)] if pod.node == bare.c else [only(bare.c), pin]
        assert terms["nodeSelectorTerms"] == [
            {**required[0], "matchFields": [pin]},
            {**required[1], "matchFields": fields},
        ]
        preference = of_nodes["preferredDuringSchedulingIgnoredDuringExecution"]
        assert preference == preferred
        assert pod.pod["spec"]["nodeSelector"] == bare.labels


@pytest.mark.every_release
async def test_a_node_selector_leaves_only_its_nodes(bare: Fleet) -> None:
    await publish(bare, 1, *bare.nodes)
    selector: Json = {"node_selector": {HOSTNAME: bare.c}}
    spec = asks(exactly(bare.device_class))
    (pod,) = await run_gang(bare, "there", spec, **selector)
    assert pod.node == bare.c
    (waiting,) = await create_gang(bare, "there-too", spec, **selector)
    await until_told(bare.kube, waiting, "GangDevicesTaken")


async def test_a_tainted_node_is_for_pods_that_tolerate_it(
    bare: Fleet, kube: Kube
) -> None:
    taint = {"key": "example.com/for", "value": "training", "effect": "NoSchedule"}
    node = named("v1", "Node", bare.a)
    await kube.patch(node, {"spec": {"taints": [taint]}})
    await publish(bare, 2, bare.a)
    spec = asks(exactly(bare.device_class))
    (waiting,) = await create_gang(bare, "any", spec)
    await until_told(kube, waiting, "GangNodeTainted")
    tolerations = [{"key": "example.com/for", "value": "training"}]
    await run_gang(bare, "train", spec, tolerations=tolerations)
    await kube.patch(node, {"spec": {"taints": None}})
    await until_bound(bare, "any")


async def test_cpus_are_counted_with_the_devices(bare: Fleet, kube: Kube) -> None:
    """Two pods would have their devices on one node, but not their CPUs."""
    await publish(bare, 2, bare.a, bare.b)
    spec = asks(exactly(bare.device_class))
    pods = await run_gang(bare, "two", spec, 2, requests={"cpu": "40"})
    assert {pod.node for pod in pods} == {bare.a, bare.b}
    (waiting,) = await create_gang(bare, "more", spec, requests={"cpu": "40"})
    await until_told(kube, waiting, "GangNodeResourcesInsufficient")


def deployment(site: Fleet, replicas: int, **rolling: Any) -> Json:
    """Describe a Deployment whose pods are one gang."""
    pod = gang_pod(
        site.namespace, "", gang="serve", size=replicas, templates={"d": "one"}
    )
    pod["spec"]["restartPolicy"] = "Always"
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve", "namespace": site.namespace},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "selector": {"matchLabels": {GANG: "serve"}},
            "template": {
                "metadata": {
                    "labels": pod["metadata"]["labels"],
                    "annotations": pod["metadata"]["annotations"],
                },
                "spec": pod["spec"],
            },
        },
    }


async def test_a_deployment_rolls_while_devices_are_full(
    bare: Fleet, kube: Kube
) -> None:
    """A new pod has the device of an old one as soon as that is given back.

    It makes three at once and ends one; together they would wait for ever.
    """
    await publish(bare, 2, bare.a, bare.b)
    spec = asks(exactly(bare.device_class))
    await kube.create(objects.template(bare.namespace, "one", spec))
    made = await kube.create(deployment(bare, 4, maxSurge=2, maxUnavailable=1))
    old = await pods_of(bare, "serve", 4, is_running)
    changed = {"metadata": {"annotations": {"example.com/version": "two"}}}
    await kube.patch(made, {"spec": {"template": changed}})

    async def rolled() -> bool:
        pods = await kube.list("v1", "Pod", bare.namespace)
        names = set(map(name_of, filter(is_running, pods)))
        return len(names) == 4 and names.isdisjoint(map(name_of, old))

    await eventually(rolled, "four new pods run", 60)
    pods = await kube.list("v1", "Pod", bare.namespace)
    claims = [await bare.generated(pod) for pod in pods]
    held = {
        (result["pool"], result["device"])
        for claim in claims
        for result in claim["status"]["allocation"]["devices"]["results"]
    }
    assert len(held) == 4
