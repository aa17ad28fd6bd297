"""What STATE shows is enough to decide by: devices, and pods on nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from contracts import names
from contracts.gang import Gang
from contracts.ids import (
    DeviceID,
    DeviceName,
    DriverName,
    GangKey,
    GangUID,
    Namespace,
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
from contracts.names import GANG_UID
from contracts.pod_terms import HostPort
from contracts.pods.node_affinity import REQUIRED
from contracts.pods.pod_rules import rules_of_node
from solver.allocate import allocate
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import BatchLimits
from solver.snapshot.node_state import NodeUse, list_running
from solver.snapshot.parts import NodePart, node_key
from solver.snapshot.running import RunningPod, running_of_member, running_of_pod
from solver.snapshot.snapshot import Snapshot, apply
from tests import builders
from tests.builders import gang, member, member_claim, pod, request
from tests.builders.neighbours import apart, caring, near, spread, term, zoned
from tests.builders.problems import CLUSTER, observe_core, problem_of
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


def tried_again(snapshot: Snapshot, then: Callable[[Snapshot], Snapshot]) -> bool:
    """Say whether a gang that was tried in vain is tried again for what happened."""
    snapshot = snapshot.without_grown()
    queue = GangQueue()
    for record in snapshot.waiting.values():
        queue.follow(record)
    assert queue.choose(snapshot, BatchLimits())
    assert not queue.choose(snapshot, BatchLimits())
    snapshot = then(snapshot)
    queue.wake(snapshot, snapshot.grown)
    return bool(queue.choose(snapshot, BatchLimits()))


def ready(gang: Gang, *then: Any) -> bool:
    """Say whether a gang is tried again once something happened."""
    return tried_again(zoned("a", gangs=[gang]), lambda s: observe_core(s, *then))


def test_a_pod_more_lets_those_be_tried_again_who_look_for_pods() -> None:
    """Near to it, or spread; to who asks nothing of pods it is only in the way."""
    arrived = pod("r", labels={"app": "x"}, node_name="n0", phase="Running")
    assert ready(caring(affinity=near(term())), arrived)
    assert ready(caring(topology_spread_constraints=(spread(),)), arrived)
    assert not ready(caring(), arrived)


def test_a_pod_that_loses_its_label_lets_those_be_tried_again_who_keep_apart() -> None:
    """It is no longer one of those that they may not be beside."""
    meant = pod("r", labels={"app": "x"}, node_name="n0", phase="Running")
    waiting = caring(affinity=apart(term()))
    snapshot = zoned("a", gangs=[waiting], running=[meant])
    other = structs.replace(meant, metadata=structs.replace(meant.metadata, labels={}))
    assert tried_again(snapshot, lambda s: observe_core(s, other))


def test_a_pod_that_kept_others_away_lets_all_be_tried_again_when_it_goes() -> None:
    """Even where no amount of the node is known."""
    keeper = pod("r", node_name="n0", affinity=apart(term()), phase="Running")
    snapshot = zoned("a", gangs=[caring()], running=[keeper])
    gone = ObjectGone(cluster=CLUSTER, kind="Pod", key="team-a/r")
    assert tried_again(snapshot, lambda s: apply(s, gone))


def test_what_runs_is_what_a_decided_gang_was_or_its_pods_whichever_is_more() -> None:
    """Pods of the gang that ran before it was decided again are kept beside it."""
    key = GangKey(Namespace("ns"), GangUID("g"))
    decided = running_of_member("ns", member(labels={"app": "x"}), 2)
    bound = RunningPod(namespace=decided.namespace, labels={"app": "x", "i": "0"})
    before = RunningPod(namespace=decided.namespace, labels={"app": "old"})
    gang_use = NodeUse(amounts={}, gang=key, decided=True, pods=(decided,))
    pods = [NodeUse(amounts={}, gang=key, pods=(each,)) for each in (bound, before)]
    assert list_running([gang_use, pods[0]]) == [decided]
    assert list_running([gang_use, pods[0], pods[0]]) == [bound, bound]
    assert list_running([gang_use, pods[1]]) == [decided, before]
    alone = NodeUse(amounts={}, pods=(before,))
    assert list_running([alone, gang_use]) == [before, decided]


def test_a_pod_is_read_with_its_labels_ports_and_terms() -> None:
    """And with whether it is going."""
    item = pod(
        "r",
        labels={"app": "x"},
        annotations={GANG_UID: "g"},
        affinity=apart(term()),
        host_network=True,
    )
    found = running_of_pod(item)
    assert (found.labels, len(found.apart)) == ({"app": "x"}, 1)
    assert not found.terminating


def test_whom_a_pod_wants_near_does_not_say_whom_it_keeps_away() -> None:
    """An affinity that cannot be read ties the pod, which runs, and nobody else."""
    strange = {"podAffinity": {REQUIRED: 1}}
    assert running_of_pod(pod("r", affinity=strange)).apart == ()
    assert running_of_member("ns", member(affinity=strange), 1).apart == ()


def test_a_port_without_a_protocol_is_one_of_tcp() -> None:
    """And without an address one of every address."""
    bare = member(host_ports=(HostPort(port=80, protocol="", ip=""),))
    assert running_of_member("ns", bare, 1).ports == (HostPort(port=80),)
    assert rules_of_node("ns", bare.node).ports == (HostPort(port=80),)
