"""Devices of agents and of third-party drivers, each with who holds it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.drift import DeviceDrift, DriftKind
from contracts.ids import (
    ClusterName,
    DeviceID,
    DeviceName,
    DriverName,
    GangKey,
    GangUID,
    Namespace,
    NodeName,
    PoolID,
    PoolName,
)
from contracts.kubernetes.decode import to_kubernetes
from contracts.messages import DeviceHealth, ObjectObserved
from contracts.names import UNHEALTHY
from moorings.cli.device_filter import DeviceFilter
from moorings.errors import UsageError
from moorings.views.fold import DevicesFold
from moorings.views.inventory import (
    KnownDevices,
    name_classes,
    view_devices,
    view_nodes,
)
from solver.snapshot.snapshot import Snapshot, apply
from tests import builders
from tests.builders.decisions import gang_allocated, submission
from tests.builders.problems import snapshot_of

CLUSTER = ClusterName("local")
NIC = "nic.example.com"
HELD_CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {
        "namespace": "team-b",
        "name": "web-nic-x1",
        "uid": "c1",
        "ownerReferences": [{"kind": "Pod", "name": "web-0"}],
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "n", "driver": NIC, "pool": "n1", "device": "nic-0"}
                ]
            },
            "allocationTimestamp": "2026-01-02T03:04:05Z",
        }
    },
}


def slice_of(*names: str, generation: int = 1, node: str = "n1") -> dict[str, Any]:
    """Make a slice of a third-party driver, as the publisher says it on the bus."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-nics-{generation}"},
        "spec": {
            "driver": NIC,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": [{"name": name} for name in names],
        },
    }


def observe(snapshot: Snapshot, *objects: dict[str, Any]) -> Snapshot:
    for raw in objects:
        meta = raw["metadata"]
        key = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
        message = ObjectObserved(cluster=CLUSTER, kind=raw["kind"], key=key, object=raw)
        snapshot = apply(snapshot, message)
    return snapshot


def rows_of(snapshot: Snapshot, **known: Any) -> dict[str, dict[str, Any]]:
    rows = view_devices(KnownDevices(snapshot=snapshot, **known))
    return {row["name"]: row for row in rows}


GPUS = {"n1": [builders.pool(*builders.devices(2), name="n1")]}


GPU_POOL = PoolID(DriverName(builders.DRIVER), PoolName("n1"))
SICK = DeviceHealth(
    device=DeviceID(GPU_POOL.driver, GPU_POOL.pool, DeviceName("gpu-0")),
    verdict="Unhealthy",
    taints=(replace(builders.taint(UNHEALTHY), time_added="2026-01-02T03:04:05Z"),),
    message="fell off the bus",
    reason="Xid79",
)
JUDGED = {"judged": {SICK.device: SICK}, "announced": frozenset((GPU_POOL,))}


def test_health_is_what_an_agent_says_and_of_foreign_devices_nobody_does() -> None:
    """With the time since when, and the reason."""
    rows = rows_of(observe(snapshot_of(GPUS), slice_of("nic-0")), **JUDGED)
    assert {name: row["health"] for name, row in rows.items()} == {
        "gpu-0": "Unhealthy",
        "gpu-1": "Healthy",
        "nic-0": "",
    }
    assert rows["gpu-0"]["healthSince"] == "2026-01-02T03:04:05Z"
    assert rows["gpu-0"]["healthMessage"] == "Xid79: fell off the bus"


def test_third_party_devices_stand_beside_those_of_agents() -> None:
    """Held by the claim of a pod that kube-scheduler placed; the other one is free."""
    snapshot = observe(snapshot_of(GPUS), slice_of("nic-0", "nic-1"), HELD_CLAIM)
    rows = rows_of(snapshot)
    assert list(rows) == ["gpu-0", "gpu-1", "nic-0", "nic-1"]
    assert {row["node"] for row in rows.values()} == {"n1"}
    assert rows["nic-1"]["states"] == ["Free"]
    assert rows["nic-0"]["states"] == ["Held"]
    assert rows["nic-0"]["holders"] == [
        {
            "gang": "",
            "pods": ["web-0"],
            "claim": "team-b/web-nic-x1",
            "share": "",
            "since": "2026-01-02T03:04:05Z",
        }
    ]


def test_who_holds_a_device_is_named_with_its_gang() -> None:
    """By the pod of the claim; before it is written, by the decision."""
    gang = f"{builders.NAMESPACE}/train"
    key = GangKey(Namespace(builders.NAMESPACE), GangUID(builders.UID))
    nodes = {"node-1": [builders.pool(*builders.devices(2), name="node-1")]}
    snapshot = observe(snapshot_of(nodes), slice_of("nic-0"), HELD_CLAIM)
    snapshot = apply(snapshot, submission(), sequence=1)
    snapshot = apply(snapshot, gang_allocated(), sequence=1)
    rows = rows_of(snapshot, pod_gangs={"team-b/web-0": key})
    assert rows["nic-0"]["holders"][0]["gang"] == gang
    decided = {"gang": gang, "pods": [], "claim": "", "share": "", "since": ""}
    assert rows["gpu-0"]["holders"] == [decided]
    assert rows["gpu-1"]["holders"] == []


def test_devices_of_an_old_generation_are_not_there() -> None:
    old, new = slice_of("nic-0", "nic-9"), slice_of("nic-0", generation=2)
    rows = rows_of(observe(snapshot_of(GPUS), old, new))
    assert "nic-9" not in rows


def test_what_keeps_a_device_away_is_its_state() -> None:
    tainted = slice_of("nic-0", "nic-1")
    tainted["spec"]["devices"][0]["taints"] = [{"key": "a", "effect": "NoSchedule"}]
    unhealthy = {"key": "moorings.dev/unhealthy", "effect": "NoExecute"}
    tainted["spec"]["devices"][1]["taints"] = [unhealthy]
    rows = rows_of(observe(snapshot_of(GPUS), tainted, HELD_CLAIM))
    assert rows["nic-0"]["states"] == ["Held", "Tainted"]
    assert rows["nic-0"]["taints"] == ["a:NoSchedule"]
    assert rows["nic-1"]["states"] == ["Unhealthy"]
    away = rows_of(snapshot_of(GPUS, away=["n1"]))
    assert away["gpu-0"]["states"] == ["Unavailable"]
    assert away["gpu-0"]["why"] == "away"


def test_a_node_counts_its_devices_by_what_they_are() -> None:
    known = KnownDevices(
        snapshot=observe(snapshot_of(GPUS), slice_of("nic-0", "nic-1"), HELD_CLAIM),
        heard=frozenset(),
    )
    (row,) = view_nodes(known, view_devices(known))
    assert (row["devices"], row["free"], row["held"], row["pools"]) == (4, 3, 1, 2)
    assert row["drivers"] == sorted((builders.DRIVER, NIC))
    assert row["status"] == "silent"
    heard = KnownDevices(snapshot=known.snapshot, heard=frozenset((NodeName("n1"),)))
    assert view_nodes(heard, [])[0]["status"] == "ready"


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, {"gpu-0", "gpu-1", "nic-0", "nic-1"}),
        ({"driver": NIC}, {"nic-0", "nic-1"}),
        ({"state": "HELD"}, {"nic-0"}),
        ({"driver": NIC, "state": "free"}, {"nic-1"}),
        ({"node": "n2"}, set()),
        ({"held": True}, {"nic-0"}),
        ({"free": True, "driver": NIC}, {"nic-1"}),
        ({"health": "HEALTHY"}, {"gpu-1"}),
        ({"health": "unhealthy"}, {"gpu-0"}),
        ({"pool": "n1", "state": "free"}, {"gpu-0", "gpu-1", "nic-1"}),
    ],
)
def test_devices_are_selected_by_where_and_what_they_are(
    wanted: dict[str, Any], names: set[str]
) -> None:
    snapshot = observe(snapshot_of(GPUS), slice_of("nic-0", "nic-1"), HELD_CLAIM)
    chosen = DeviceFilter(**wanted)
    assert bool(chosen) is bool(wanted)
    rows = rows_of(snapshot, **JUDGED)
    assert {name for name, row in rows.items() if chosen.lets_through(row)} == names


def test_what_drifted_is_said_of_its_device_beside_what_it_is() -> None:
    """A device that is used without being given is free for who decides."""
    drift = DeviceDrift(
        kind=DriftKind.NOT_ALLOCATED, device=SICK.device, claim="team/a", pod="team/p"
    )
    rows = rows_of(snapshot_of(GPUS), drifts={SICK.device: (drift,)})
    assert rows["gpu-0"]["states"] == ["Free", "Drifted"]
    (told,) = rows["gpu-0"]["drift"]
    assert (told["kind"], told["pod"]) == ("InUseNotAllocated", "team/p")
    assert (rows["gpu-1"]["states"], rows["gpu-1"]["drift"]) == (["Free"], [])


def test_a_state_that_there_is_not_is_refused() -> None:
    with pytest.raises(
        UsageError, match="--state 'broken' is unknown; use one of drifted, free"
    ):
        DeviceFilter(state="broken")


def test_a_health_that_there_is_not_is_refused_and_so_is_a_contradiction() -> None:
    with pytest.raises(
        UsageError, match="--health 'ok' is unknown; use one of healthy, un"
    ):
        DeviceFilter(health="ok")
    with pytest.raises(UsageError, match="--free and --held exclude each other"):
        DeviceFilter(free=True, held=True)


def test_a_class_is_of_the_driver_that_it_insists_on() -> None:
    fold = DevicesFold()
    for name, selector in (
        ("gpus", 'device.driver == "gpu.example.com"'),
        ("anything", "true"),
    ):
        raw = to_builtins(to_kubernetes(builders.device_class(name, selector)))
        message = ObjectObserved(
            cluster=CLUSTER, kind="DeviceClass", key=name, object=raw
        )
        fold.apply(message, 0)
    assert name_classes(fold.known()) == {"": ["anything"], "gpu.example.com": ["gpus"]}
