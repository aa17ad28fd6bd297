"""Pods go where their volumes are: decided there at once, and bound there."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.lab.cluster import create_pods, is_running, template
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.waits import pods_of, until_told

HOST = "kubernetes.io/hostname"


def volume_class(name: str) -> Json:
    """Describe a class of local volumes, bound when their pod has its node."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def local_volume(site: Fleet, node: str) -> Json:
    """Describe a volume that only one node reaches."""
    values = {"key": HOST, "operator": "In", "values": [node]}
    terms = [{"matchExpressions": [values]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{site.namespace}-{node}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "local": {"path": "/none"},
            "storageClassName": site.namespace,
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }


def volume_claim(site: Fleet, name: str) -> Json:
    """Describe a claim for a local volume."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": site.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": site.namespace,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def data(claim: str) -> list[Json]:
    """Describe the volumes of a pod."""
    return [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]


@pytest.fixture
async def local(site: Fleet) -> AsyncIterator[Fleet]:
    """Only the second node has a volume that is free."""
    volume = local_volume(site, site.b)
    await site.kube.create(volume_class(site.namespace))
    await site.kube.create(volume)
    await template(site, "one", count=1)
    yield site
    await site.kube.delete(volume)
    await site.kube.delete(volume_class(site.namespace))


async def test_a_volume_that_is_to_be_bound_decides_the_node(
    local: Fleet, kube: Kube
) -> None:
    """First fit would take the first node, where kube-scheduler refuses the pod."""
    claim = await kube.create(volume_claim(local, "data"))
    await create_pods(local, "train", [0], "one", size=1, volumes=data("data"))
    (pod,) = await pods_of(local, "train", 1, is_running)
    assert pod["spec"]["nodeName"] == local.b
    bound = await kube.until(claim, lambda now: now["status"]["phase"] == "Bound")
    assert bound["spec"]["volumeName"] == f"{local.namespace}-{local.b}"


async def test_a_gang_waits_for_a_claim_of_a_volume_and_says_so(
    local: Fleet, kube: Kube
) -> None:
    pods = await create_pods(local, "train", [0], "one", size=1, volumes=data("late"))
    note = await until_told(kube, pods[0], "GangVolumesMissing")
    assert note.startswith("pod train-0: no PersistentVolumeClaim late yet")
    await kube.create(volume_claim(local, "late"))
    (pod,) = await pods_of(local, "train", 1, is_running)
    assert pod["spec"]["nodeName"] == local.b


async def test_pods_that_come_back_go_to_their_bound_volume(
    local: Fleet, kube: Kube
) -> None:
    """As a StatefulSet's pod does: its claim stays when it is deleted."""
    claim = await kube.create(volume_claim(local, "data"))
    await create_pods(local, "first", [0], "one", size=1, volumes=data("data"))
    (pod,) = await pods_of(local, "first", 1, is_running)
    await kube.until(claim, lambda now: now["status"]["phase"] == "Bound")
    await kube.delete(pod)
    await kube.until_gone(pod)
    await create_pods(local, "second", [0], "one", size=1, volumes=data("data"))
    (pod,) = await pods_of(local, "second", 1, is_running)
    assert pod["spec"]["nodeName"] == local.b
