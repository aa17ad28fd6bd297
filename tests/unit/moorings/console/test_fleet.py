"""The picture follows what is known, and only where it changed."""

from __future__ import annotations

from typing import Any

from contracts.ids import (
    ClusterName,
    DeviceID,
    DeviceName,
    DriverName,
    NodeName,
    PoolName,
)
from contracts.messages import (
    DeviceHealth,
    DevicesAnnounced,
    HealthJudged,
    ObjectObserved,
)
from contracts.names import GANG_UID, UNHEALTHY
from moorings.console.fleet import (
    FleetPicture,
    find_groups,
    name_kind,
)
from moorings.views.fold import DevicesFold
from tests import builders
from tests.builders.decisions import gang_allocated, submission

CLUSTER = ClusterName("local")
A, B = NodeName("a"), NodeName("b")
RACK = "topology.kubernetes.io/rack"


def announced(node: NodeName, *, count: int = 2) -> DevicesAnnounced:
    """Announce a pool of the node's name."""
    pool = builders.pool(*builders.devices(count), name=node)
    return DevicesAnnounced(
        cluster=CLUSTER, node=node, pools=(pool,), labels={RACK: "r1"}
    )


class Site:
    """A picture and what it is made of."""

    def __init__(self, *messages: Any) -> None:
        self.fold, self.picture = DevicesFold(), FleetPicture()
        self.sequence = 0
        self.fold.heard = {A, B}
        self.say(*messages)

    def say(self, *messages: Any) -> set[NodeName]:
        """Take messages in; returns the nodes that are drawn anew."""
        for message in messages:
            self.sequence += 1
            self.fold.apply(message, self.sequence)
        return self.picture.update(self.fold.known(), self.fold.take_touched())


def test_a_node_has_a_letter_for_each_device() -> None:
    site = Site(announced(A))
    assert site.picture.records[A] == {
        "name": "a",
        "status": "ready",
        "groups": {"rack": "r1"},
        "states": "FF",
        "kinds": [[builders.DRIVER, 2]],
        "gangs": {},
    }


def test_only_nodes_that_changed_are_drawn_anew() -> None:
    site = Site(announced(A), announced(B))
    assert site.say(announced(A, count=3)) == {A}
    assert site.say(announced(A, count=3)) == set()


def test_a_sick_device_is_seen_and_a_healed_one_is_not() -> None:
    site = Site(announced(A))
    device = DeviceID(DriverName(builders.DRIVER), PoolName("a"), DeviceName("gpu-1"))
    sick = DeviceHealth(
        device=device, verdict="Unhealthy", taints=(builders.taint(UNHEALTHY),)
    )
    assert site.say(HealthJudged(cluster=CLUSTER, node=A, devices=(sick,))) == {A}
    assert site.picture.records[A]["states"] == "FU"
    assert site.say(HealthJudged(cluster=CLUSTER, node=A)) == {A}
    assert site.picture.records[A]["states"] == "FF"


def test_a_node_that_falls_silent_is_not_ready() -> None:
    site = Site(announced(A))
    site.fold.heard = set()
    assert site.say() == {A}
    assert site.picture.records[A]["status"] == "silent"


def test_a_node_that_is_gone_has_no_record() -> None:
    site = Site(announced(A))
    gone = DevicesAnnounced(cluster=CLUSTER, node=A)
    site.say(gone)
    assert site.picture.records[A]["states"] == ""


def test_a_gang_is_drawn_by_its_name_once_that_is_told() -> None:
    decision = gang_allocated(pods=1)
    node = decision.members[0].node
    (claim,) = decision.members[0].claims
    devices = claim.allocation.devices.results
    pool = builders.pool(
        *(builders.device(r.device) for r in devices), name=devices[0].pool
    )
    site = Site(DevicesAnnounced(cluster=CLUSTER, node=node, pools=(pool,)), decision)
    indexes = list(range(len(devices)))
    assert site.picture.records[node]["gangs"] == {decision.uid: indexes}
    assert site.say(submission()) == {node}
    (name,) = site.picture.records[node]["gangs"]
    assert name == f"{decision.namespace}/{decision.name}"


def test_who_holds_a_device_is_drawn_when_its_pod_says_so() -> None:
    site = Site(announced(A), submission())
    raw = {"namespace": builders.NAMESPACE, "name": "c", "uid": "c1"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p1"}
    results = [
        {"request": "gpu", "driver": builders.DRIVER, "pool": "a", "device": "gpu-1"}
    ]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {**raw, "ownerReferences": [owner]},
        "spec": {},
        "status": {"allocation": {"devices": {"results": results}}},
    }
    assert site.say(observed(claim)) == {A}
    assert site.picture.records[A]["states"] == "FH"
    assert site.picture.records[A]["gangs"] == {"": [1]}
    meta = {"namespace": builders.NAMESPACE, "name": "p"}
    annotations = {GANG_UID: builders.UID}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "annotations": annotations},
        "spec": {},
    }
    assert site.say(observed(pod)) == {A}
    assert site.picture.records[A]["gangs"] == {f"{builders.NAMESPACE}/train": [1]}


def observed(raw: dict[str, Any]) -> ObjectObserved:
    """Observe an object of Kubernetes."""
    meta = raw["metadata"]
    key = f"{meta['namespace']}/{meta['name']}"
    return ObjectObserved(cluster=CLUSTER, kind=raw["kind"], key=key, object=raw)


def test_a_kind_is_a_driver_and_a_product() -> None:
    (device,) = builders.devices(1)
    row = {"driver": "gpu.example.com", "attributes": device.attributes}
    assert name_kind(row).startswith("gpu.example.com")


def test_groups_are_labels_of_place() -> None:
    labels = {RACK: "r1", "example.com/rack": "r2", "app": "x", "team/zone": "z"}
    assert find_groups({RACK: "r1", "app": "x", "team/zone": "z"}) == {
        "rack": "r1",
        "zone": "z",
    }
    assert set(find_groups(labels)) == {"rack", "zone"}
