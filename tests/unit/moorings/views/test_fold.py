"""What is known of devices follows what was said last."""

from __future__ import annotations

from contracts.device import Device, ResourcePool
from contracts.drift import DeviceDrift, DriftFound, DriftKind
from contracts.ids import (
    ClusterName,
    DeviceID,
    DeviceName,
    DriverName,
    NodeName,
    PoolName,
)
from contracts.messages import (
    AllocationWritten,
    DeviceHealth,
    DevicesAnnounced,
    HealthJudged,
    ObjectGone,
    ObjectObserved,
    PodWritten,
)
from contracts.names import GANG_UID
from moorings.views.fold import DevicesFold
from moorings.views.inventory import view_devices, view_nodes
from moorings.views.states import AWAY, FREE
from solver.snapshot.snapshot import InventoryExpired
from tests.builders.decisions import gang_allocated, submission

CLUSTER, NODE = ClusterName("local"), NodeName("a")
DEVICE = DeviceID(DriverName("gpu.example.com"), PoolName("a"), DeviceName("gpu-0"))
SICK = DeviceHealth(device=DEVICE, verdict="Unhealthy", message="too hot")


def test_a_device_that_is_well_again_is_not_judged() -> None:
    fold = DevicesFold()
    fold.apply(HealthJudged(cluster=CLUSTER, node=NODE, devices=(SICK,)), 1)
    assert fold.known().judged == {DEVICE: SICK}
    fold.apply(HealthJudged(cluster=CLUSTER, node=NODE), 2)
    assert fold.known().judged == {}


def test_what_drifted_is_told_until_its_node_says_so_no_more() -> None:
    fold = DevicesFold()
    drift = DeviceDrift(kind=DriftKind.CLAIM_GONE, device=DEVICE, claim="team/a")
    fold.note_drift(DriftFound(cluster=CLUSTER, node=NODE, devices=(drift, drift)))
    assert fold.known().drifts == {DEVICE: (drift, drift)}
    fold.note_drift(DriftFound(cluster=CLUSTER, node=NODE))
    assert fold.known().drifts == {}


def test_a_pool_that_is_not_announced_any_more_is_not_vouched_for() -> None:
    fold = DevicesFold()
    pool = ResourcePool(driver=DEVICE.driver, name=DEVICE.pool)
    fold.apply(DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(pool,)), 1)
    assert len(fold.known().announced) == 1
    fold.apply(DevicesAnnounced(cluster=CLUSTER, node=NODE), 2)
    assert fold.known().announced == frozenset()


def test_a_pool_of_a_driver_that_the_solver_refuses_is_not_free() -> None:
    """It is shown with the reason, as long as the solver says so."""
    fold = DevicesFold()
    card = Device(name=DEVICE.device)
    good = ResourcePool(driver=DEVICE.driver, name=DEVICE.pool, devices=(card,))
    phantom = ResourcePool(
        driver=DriverName("foreign.example.com"), name=DEVICE.pool, devices=(card,)
    )
    both = DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(good, phantom))
    fold.apply(both, 1)
    assert [row["states"] for row in view_devices(fold.known())] == [[FREE]] * 2
    fold.limit_drivers((DEVICE.driver,))
    refused, free = view_devices(fold.known())
    assert (free["driver"], free["states"], free["why"]) == (DEVICE.driver, [FREE], "")
    assert (refused["node"], refused["states"]) == (NODE, [AWAY])
    assert "AGENT_DRIVERS" in refused["why"]
    (node,) = view_nodes(fold.known(), [refused, free])
    assert (node["devices"], node["free"]) == (2, 1)
    assert node["refused"] == [f"foreign.example.com/a: {refused['why']}"]
    fold.apply(DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(good,)), 2)
    assert view_devices(fold.known()) == [free]
    fold.apply(both, 3)
    fold.limit_drivers(())
    assert [row["states"] for row in view_devices(fold.known())] == [[FREE]] * 2


def test_slices_of_the_driver_itself_count_and_are_no_agents() -> None:
    fold = DevicesFold()
    fold.limit_drivers((DriverName("other.example.com"),))
    card = Device(name=DEVICE.device)
    pool = ResourcePool(driver=DEVICE.driver, name=DEVICE.pool, devices=(card,))
    fold.apply(DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(pool,)), 1)
    spec = {
        "driver": DEVICE.driver,
        "nodeName": NODE,
        "pool": {"name": DEVICE.pool, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": DEVICE.device}],
    }
    slices = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    said = {**slices, "metadata": {"name": "s", "uid": "s"}, "spec": spec}
    observed = ObjectObserved(
        cluster=CLUSTER, kind="ResourceSlice", key="s", object=said
    )
    fold.apply(observed, 2)
    (row,) = view_devices(fold.known())
    assert row["states"] == [FREE]
    (node,) = view_nodes(fold.known(), [row])
    assert node["refused"] == []


def test_a_node_that_announces_no_more_is_not_announced_anew() -> None:
    fold = DevicesFold()
    fold.apply(DevicesAnnounced(cluster=CLUSTER, node=NODE), 1)
    fold.apply(InventoryExpired(node=NODE), 2)
    fold.limit_drivers((DEVICE.driver,))
    assert NODE not in fold.snapshot.inventory.announced


def test_a_pod_that_is_gone_runs_for_nobody() -> None:
    fold = DevicesFold()
    metadata = {"namespace": "n", "name": "p", "annotations": {GANG_UID: "u"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}
    key = "n/p"
    fold.apply(ObjectObserved(cluster=CLUSTER, kind="Pod", key=key, object=pod), 1)
    assert fold.known().pod_gangs[key].uid == "u"
    fold.apply(ObjectGone(cluster=CLUSTER, kind="Pod", key=key), 2)
    assert fold.known().pod_gangs == {}


def test_a_claim_is_of_the_pods_that_it_was_written_for() -> None:
    decision = gang_allocated(pods=1)
    pod = PodWritten(member="worker", index=0, pod="p-0", claims={"gpus": "c"})
    fold = DevicesFold()
    fold.apply(decision, 1)
    written = AllocationWritten(
        cluster=CLUSTER,
        namespace=decision.namespace,
        uid=decision.uid,
        attempt=1,
        pods=(pod,),
    )
    fold.apply(written, 1)
    assert fold.known().claim_pods == {f"{decision.namespace}/c": ("p-0",)}


def test_without_a_cluster_claims_have_the_names_of_the_decision() -> None:
    """Once they are written, and not before."""
    fold, decision = DevicesFold(), gang_allocated()
    fold.apply(submission(), 1)
    fold.apply(decision, 2)
    assert fold.known().decided_claims == {}
    written = AllocationWritten(
        cluster=decision.cluster,
        namespace=decision.namespace,
        uid=decision.uid,
        attempt=decision.attempt,
    )
    fold.apply(written, 3)
    (claim,) = decision.members[0].claims
    (result,) = claim.allocation.devices.results
    named = f"{decision.namespace}/{claim.ref.name}"
    key = (decision.key, result.device_id, "")
    assert fold.known().decided_claims == {key: named}


def test_who_cannot_hear_agents_does_not_say_that_they_are_silent() -> None:
    fold = DevicesFold()
    fold.heard.add(NODE)
    assert fold.known().heard == frozenset({NODE})
    assert fold.known(hears=False).heard is None
