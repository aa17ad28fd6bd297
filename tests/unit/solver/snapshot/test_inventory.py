"""What STATE shows of a cluster without node agents is enough to decide by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contracts import names
from contracts.gang import Gang
from contracts.ids import (
    DeviceID,
    DeviceName,
    DriverName,
    GangUID,
    NodeName,
    PoolName,
    object_key,
)
from contracts.messages import (
    DeviceHealth,
    DevicesAnnounced,
    HealthJudged,
    ObjectGone,
    ObjectObserved,
    SubmitGang,
)
from solver.allocate import allocate
from solver.snapshot.parts import NodePart, node_key
from solver.snapshot.snapshot import Snapshot, apply
from tests import builders
from tests.builders import gang, member, member_claim, request
from tests.builders.problems import CLUSTER, problem_of
from tests.lab.controlplane import objects

DRIVER = "gpu.example.com"
Raw = dict[str, Any]


def resource(kind: str, metadata: Raw, **parts: Raw) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
    } | parts


def core(kind: str, metadata: Raw, **parts: Raw) -> Raw:
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata} | parts


def node(name: str, ready: str = "True", **spec: Any) -> Raw:
    status = {
        "allocatable": {"cpu": "4", "pods": "10"},
        "conditions": [{"type": "Ready", "status": ready}],
        "declaredFeatures": ["DRAConsumableCapacity"],
    }
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return core("Node", metadata, spec=spec, status=status)


def slice_of(name: str, devices: int = 2) -> Raw:
    """Write a slice of a driver that Moorings has no agent for."""
    spec = {
        "driver": DRIVER,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
    }
    return resource("ResourceSlice", {"name": f"{name}-slice"}, spec=spec)


def claim_of(name: str, pool: str, *devices: str) -> Raw:
    """Write a claim without what it asks for."""
    results = [
        {"request": "r", "driver": DRIVER, "pool": pool, "device": device}
        for device in devices
    ]
    status = {"allocation": {"devices": {"results": results}}} if devices else {}
    metadata = {"namespace": "team", "name": name, "uid": f"uid-{name}"}
    return resource("ResourceClaim", metadata, status=status)


def pod_of(name: str, on: str, gang_uid: str, cpu: str) -> Raw:
    annotations = {names.GANG_UID: gang_uid}
    metadata = {"namespace": "team", "name": name, "annotations": annotations}
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"nodeName": on, "containers": containers}
    return core("Pod", metadata, spec=spec, status={"phase": "Running"})


CLASS = resource("DeviceClass", {"name": "gpu"}, spec={})


def seen(*objects: Raw) -> Snapshot:
    snapshot = Snapshot()
    for raw in objects:
        metadata = raw["metadata"]
        key = metadata["name"]
        if "namespace" in metadata:
            key = object_key(metadata["namespace"], key)
        message = ObjectObserved(cluster=CLUSTER, kind=raw["kind"], key=key, object=raw)
        snapshot = apply(snapshot, message)
    return snapshot


def placed(snapshot: Snapshot, asked: Gang) -> list[tuple[str, list[str]]]:
    """Decide a gang: the node and the devices of each of its pods."""
    uid = GangUID(asked.metadata.uid)
    message = SubmitGang(cluster=CLUSTER, uid=uid, gang=asked)
    snapshot = apply(snapshot, message, sequence=1)
    (decided,) = allocate(problem_of(snapshot)).gangs
    return [
        (pod.node, [r.device for c in pod.claims for r in c.allocation.devices.results])
        for pod in decided.members
    ]


def asking(pods: int = 1, **node: Any) -> Gang:
    claim = member_claim(request(device_class="gpu"))
    return gang(member(claim, count=pods, **node), name="train", namespace="team")


def test_what_others_hold_of_a_foreign_driver_is_taken() -> None:
    """Claims that nobody of us wrote count as well."""
    world = (CLASS, node("a"), node("b"), slice_of("a"), slice_of("b"))
    taken = seen(*world, claim_of("x", "a", "gpu-0", "gpu-1"), claim_of("y", "b"))
    assert placed(taken, asking(2)) == [("b", ["gpu-0"]), ("b", ["gpu-1"])]
    full = seen(
        *world, claim_of("x", "a", "gpu-0", "gpu-1"), claim_of("y", "b", "gpu-0")
    )
    assert placed(full, asking(2)) == []
    freed = apply(
        full,
        ObjectObserved(
            cluster=CLUSTER,
            kind="ResourceClaim",
            key="team/x",
            object=claim_of("x", "a"),
        ),
    )
    assert len(placed(freed, asking(3))) == 3


def test_a_node_s_agent_judges_foreign_devices_of_its_own_node() -> None:
    """Nobody announces them; what another node says of them counts for nothing."""
    world = seen(CLASS, node("a"), node("b"), slice_of("a"))
    device = DeviceID(DriverName(DRIVER), PoolName("a"), DeviceName("gpu-0"))
    sick = DeviceHealth(device=device, verdict="Unhealthy", taints=(builders.taint(),))
    said = {
        name: HealthJudged(cluster=CLUSTER, node=NodeName(name), devices=(sick,))
        for name in "ab"
    }
    assert placed(apply(world, said["b"]), asking()) == [("a", ["gpu-0"])]
    assert placed(apply(world, said["a"]), asking()) == [("a", ["gpu-1"])]


@pytest.mark.parametrize(
    "away",
    [
        node("a", ready="False"),
        node("a", unschedulable=True),
        node("a", taints=[{"key": "k", "effect": "NoSchedule"}]),
    ],
)
def test_a_node_that_takes_no_pods_is_passed_by(away: Raw) -> None:
    """Not ready, cordoned or tainted."""
    snapshot = seen(CLASS, away, node("b"), slice_of("a"), slice_of("b"))
    assert [on for on, _ in placed(snapshot, asking(2))] == ["b", "b"]


def test_a_pod_that_is_replaced_goes_to_the_node_of_its_gang() -> None:
    """Its gang runs on under the same name, and what it uses there still counts."""
    world = (CLASS, node("a"), node("b"), slice_of("a"), slice_of("b"))
    running = [pod_of("w-0", "a", "first", "2"), claim_of("c-0", "a", "gpu-0")]
    snapshot = seen(*world, *running)
    replacement = asking(node_name="a", resources={"cpu": 2})
    assert placed(snapshot, replacement) == [("a", ["gpu-1"])]
    assert placed(snapshot, asking(node_name="a", resources={"cpu": 3})) == []
    assert placed(snapshot, asking(2, node_name="a")) == []


def _announced(snapshot: Snapshot) -> Snapshot:
    pool = builders.pool(builders.device(), driver=DRIVER, name="far")
    agent = DevicesAnnounced(cluster=CLUSTER, node=NodeName("far"), pools=(pool,))
    return apply(snapshot, agent)


def _sliced(snapshot: Snapshot) -> Snapshot:
    raw = objects.resource_slice(DRIVER, "far", objects.devices(1))
    key = raw["metadata"]["name"]
    message = ObjectObserved(cluster=CLUSTER, kind="ResourceSlice", key=key, object=raw)
    return apply(snapshot, message)


@pytest.mark.parametrize("with_devices", [_announced, _sliced])
@pytest.mark.parametrize("node_first", [True, False])
def test_devices_on_a_node_that_kubernetes_does_not_name_are_of_no_use(
    node_first: bool, with_devices: Callable[[Snapshot], Snapshot]
) -> None:
    """No pod could be bound there; without a cluster the agents say what nodes are."""
    alone = with_devices(Snapshot())
    assert unavailable(alone, "far") == ""
    snapshot = with_devices(seen(node("node-1")))
    if not node_first:
        snapshot = observed(alone, node("node-1"))
    assert unavailable(snapshot, "far") == "no Node"
    assert unavailable(snapshot, "node-1") == ""
    named = observed(snapshot, node("far"))
    assert unavailable(named, "far") == ""
    gone = apply(named, ObjectGone(cluster=CLUSTER, kind="Node", key="far"))
    assert unavailable(gone, "far") == "no Node"


def observed(snapshot: Snapshot, raw: Raw) -> Snapshot:
    name = raw["metadata"]["name"]
    message = ObjectObserved(cluster=CLUSTER, kind="Node", key=name, object=raw)
    return apply(snapshot, message)


def unavailable(snapshot: Snapshot, name: str) -> str:
    part = snapshot.inventory.pages.get(name, node_key(NodeName(name)))
    assert isinstance(part, NodePart)
    return part.unavailable
