"""The bus carries what an allocator decides by, and changes only with it."""

from __future__ import annotations

from typing import Any

import pytest

from contracts import names
from contracts.errors import DecodeError
from contracts.kubernetes.decode import decode_object
from contracts.names import GATE
from publisher.cluster.compact import compact
from runtime.kube.lenient import ALTERED

Json = dict[str, Any]


def raw(kind: str, **fields: Any) -> Json:
    metadata = {
        "name": "a",
        "namespace": "team-a",
        "uid": "uid-1",
        "resourceVersion": "7",
        "managedFields": [{"manager": "kubelet"}],
    }
    metadata |= fields.pop("metadata", {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


def pod(node: str = "", phase: str = "Running", **spec: Any) -> Json:
    containers = [{"name": "m", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    placed = {"nodeName": node} if node else {}
    spec = {"containers": containers, **placed, **spec}
    return raw("Pod", spec=spec, status={"phase": phase, "conditions": []})


def pin(node: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def opened(item: Json) -> Json:
    item["metadata"]["annotations"] = {names.GANG_UID: "g"}
    return item


def node_of(item: Json, *, decided: bool = True) -> str | None:
    found = compact(item, lambda _pod, _node: decided)
    return None if found is None else found["spec"]["nodeName"]


def test_heartbeats_of_a_node_change_nothing() -> None:
    """What no allocator decides by is left out, so it makes no message."""

    def node(beat: str, version: str) -> Json:
        condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": beat}
        return raw(
            "Node",
            metadata={"resourceVersion": version, "labels": {"rack": "r1"}},
            spec={"taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": beat}]},
            status={
                "allocatable": {"cpu": "8"},
                "capacity": {"cpu": "9"},
                "conditions": [condition],
            },
        )

    assert compact(node("1", "1")) == compact(node("2", "2"))
    assert compact(node("1", "1")) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "labels": {"rack": "r1"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.mark.parametrize(
    ("item", "node"),
    [
        (pod("node-1"), "node-1"),
        (pod("node-1", phase="Succeeded"), None),
        (pod("node-1", phase="Failed"), None),
        (pod(phase="Pending"), None),
        (opened(pod(phase="Pending", affinity=pin("node-2"))), "node-2"),
        (pod(phase="Pending", affinity=pin("node-2")), None),
        (
            opened(
                pod(
                    phase="Pending",
                    affinity=pin("node-2"),
                    schedulingGates=[{"name": GATE}],
                )
            ),
            None,
        ),
    ],
    ids=["bound", "done", "failed", "waiting", "pinned by us", "by others", "gated"],
)
def test_a_pod_uses_the_node_that_it_is_on_or_that_we_pinned_it_to(
    item: Json, node: str | None
) -> None:
    """Pods that are over, or go anywhere, use none."""
    assert node_of(item) == node


def test_a_pod_uses_the_node_that_kube_scheduler_nominated_it_for() -> None:
    """It makes room there for just this pod, or is about to bind it."""
    item = pod(phase="Pending")
    item["status"]["nominatedNodeName"] = "node-3"
    assert node_of(item) == "node-3"
    item["spec"]["schedulingGates"] = [{"name": GATE}]
    assert node_of(item) is None


def test_an_annotation_alone_puts_no_pod_on_a_node() -> None:
    """Anybody may write it, and pin the pod: what counts is that it was decided."""
    item = opened(pod(phase="Pending", affinity=pin("node-2")))
    assert node_of(item, decided=False) is None
    assert compact(item) is None
    assert node_of(opened(pod("node-1")), decided=False) == "node-1"


def test_of_a_pod_only_what_it_uses_is_kept() -> None:
    """Node, overhead and requests; the rest decides nothing."""
    found = compact(pod("node-1", overhead={"cpu": "100m"}, hostNetwork=True))
    assert found == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "team-a"},
        "spec": {
            "nodeName": "node-1",
            "overhead": {"cpu": "100m"},
            "containers": [{"name": "m", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


def test_a_claim_matters_while_it_holds_devices() -> None:
    """Without an allocation it is not on the bus."""
    allocation: Json = {"devices": {"results": []}}
    status = {"allocation": allocation, "reservedFor": [{"uid": "p"}]}
    claim = of_resource("ResourceClaim", spec={"devices": {}})
    assert compact(claim) is None
    assert compact(claim | {"status": {"reservedFor": []}}) is None
    assert compact(claim | {"status": status}) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "a", "namespace": "team-a", "uid": "uid-1"},
        "status": {"allocation": allocation},
    }


def test_a_claim_says_which_pod_owns_it() -> None:
    """For who looks at devices; other owners and the rest of it stay out."""
    status: Json = {"allocation": {"devices": {"results": []}}}
    claim = of_resource("ResourceClaim", spec={"devices": {}}, status=status)
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": "a-0", "uid": "u"},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "v"},
    ]
    claim["metadata"] = {**claim["metadata"], "ownerReferences": owners}
    said = compact(claim)
    assert said is not None
    assert said["metadata"]["ownerReferences"] == [{"kind": "Pod", "name": "a-0"}]


def test_what_the_solver_does_not_follow_is_not_said() -> None:
    """Other kinds never reach the bus."""
    assert compact(raw("Gang", spec={})) is None


@pytest.mark.parametrize(
    "kind", ["ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor"]
)
def test_of_queues_the_spec_and_our_annotations_are_kept(kind: str) -> None:
    """Status changes with every gang: it would be said again and again."""
    queue = raw(kind, spec={"x": 1}, status={"y": 2})
    ours = {"moorings.dev/patience": "5m"}
    queue["metadata"] = {**queue["metadata"], "annotations": {**ours, "other": "z"}}
    found = compact(queue)
    assert found is not None
    assert found["spec"] == {"x": 1}
    assert found["metadata"]["annotations"] == ours
    assert "status" not in found


def test_of_namespaces_the_labels_are_kept() -> None:
    """ClusterQueues choose namespaces by them."""
    namespace = raw("Namespace", spec={"finalizers": ["kubernetes"]})
    namespace["metadata"] = {**namespace["metadata"], "labels": {"team": "a"}}
    found = compact(namespace)
    assert found is not None
    assert found["metadata"]["labels"] == {"team": "a"}
    assert "spec" not in found


@pytest.mark.parametrize(
    "kind", ["ResourceSlice", "DeviceClass", "DeviceTaintRule", "ResourceClaimTemplate"]
)
def test_of_devices_and_classes_the_spec_is_kept(kind: str) -> None:
    """Status and bookkeeping are left out."""
    found = compact(of_resource(kind, spec={"x": 1}, status={"y": 2}))
    assert found is not None
    assert found["spec"] == {"x": 1}
    assert found["metadata"] == {"name": "a", "namespace": "team-a"}
    assert "status" not in found


def test_of_two_classes_the_newer_is_told_from_the_older() -> None:
    """For an extended resource it is the newer one that counts."""
    found = compact(of_resource("DeviceClass", metadata={"creationTimestamp": "t"}))
    assert found is not None
    assert found["metadata"]["creationTimestamp"] == "t"


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1"])
def test_the_bus_carries_v1_whatever_is_served(version: str) -> None:
    """What decides and what is written in the end is of one shape."""
    device: Json = {"attributes": {"model": {"string": "x"}}}
    flat = {"name": "dev-0", "basic": device}
    pool: Json = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec: Json = {"driver": "d", "pool": pool, "nodeName": "n"}
    spec |= {"devices": [{"name": "dev-0", **device}]}
    served = {**spec, "devices": [flat]} if version == "v1beta1" else spec
    item = of_resource("ResourceSlice", version, spec=served)
    allocation: Json = {"devices": {"results": []}}
    claim = of_resource("ResourceClaim", version, status={"allocation": allocation})
    for found in (compact(item), compact(claim)):
        assert found is not None
        assert found["apiVersion"] == "resource.k8s.io/v1"
        assert not decode_object(found).unknown
    assert compact(item)["spec"] == spec  # type: ignore[index] # not None: above


def of_resource(kind: str, version: str = "v1", **fields: Any) -> Json:
    fields.setdefault("spec", {})
    return raw(kind, **fields) | {"apiVersion": f"resource.k8s.io/{version}"}


def test_of_a_pod_is_kept_what_rules_of_others_read() -> None:
    """Labels, ports of the node, whom it keeps away, and that it is going."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}]
    item = pod(
        "n",
        affinity={
            "podAntiAffinity": {required: terms, "preferred": []},
            "podAffinity": {required: terms},
        },
    )
    item["metadata"] |= {
        "labels": {"app": "x"},
        "annotations": {"note": "long"},
        "deletionTimestamp": "2026-11-20T12:00:00Z",
    }
    ports = [{"containerPort": 1}, {"containerPort": 2, "hostPort": 2, "name": "n"}]
    item["spec"]["containers"][0]["ports"] = ports
    found = compact(item)
    assert found is not None
    assert found["metadata"] == {
        "name": "a",
        "namespace": "team-a",
        "labels": {"app": "x"},
        "deletionTimestamp": "2026-11-20T12:00:00Z",
    }
    assert found["spec"]["affinity"] == {"podAntiAffinity": {required: terms}}
    assert found["spec"]["containers"][0]["ports"] == [{"hostPort": 2}]


def test_what_is_not_as_it_is_served_is_not_said() -> None:
    """A class or template with parameters that nobody could read is put aside."""
    for kind in ("ResourceClaimTemplate", "DeviceClass", "ResourceSlice"):
        with pytest.raises(DecodeError, match="too deep"):
            compact(of_resource(kind, spec={}) | {ALTERED: "too deep"})
