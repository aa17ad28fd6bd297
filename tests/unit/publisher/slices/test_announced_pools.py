"""A pool is what its one node says, and stays as it was while that is in doubt."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.device import DeviceTaint, ResourcePool
from contracts.ids import DeviceID, DeviceName, NodeName, PoolID
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from contracts.names import UNHEALTHY
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.eviction_budget import EvictionBudget
from publisher.slices.layout import PoolLayout
from tests import builders
from tests.builders.decisions import CLUSTER

NODE = NodeName("node-1")
OTHER = NodeName("node-2")
POOL = builders.pool(*builders.devices(2))
POOL_ID = PoolID(POOL.driver, POOL.name)


def announced(*pools: ResourcePool, node: NodeName = NODE) -> DevicesAnnounced:
    return DevicesAnnounced(cluster=CLUSTER, node=node, pools=pools)


def unhealthy(device: str) -> HealthJudged:
    identity = DeviceID(POOL.driver, POOL.name, DeviceName(device))
    item = DeviceHealth(
        device=identity, verdict="Unhealthy", taints=(builders.taint(),)
    )
    return HealthJudged(cluster=CLUSTER, node=NODE, devices=(item,))


def tainted(wanted: object) -> list[str]:
    """Name the devices with taints."""
    assert isinstance(wanted, PoolLayout)
    devices = [device for item in wanted.slices for device in item.devices]
    return [device.name for device in devices if device.taints]


def test_pool_is_wanted_until_its_node_leaves_it_out() -> None:
    """An equal announcement is no news."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    assert state.layout_of(POOL_ID) is None
    assert state.apply_inventory(NODE, announced(POOL)) == {POOL_ID}
    assert state.apply_inventory(NODE, announced(POOL)) == frozenset()
    assert isinstance(state.layout_of(POOL_ID), PoolLayout)
    assert state.apply_inventory(NODE, announced()) == {POOL_ID}
    assert state.layout_of(POOL_ID) is None


def test_health_comes_and_goes_before_or_after_the_inventory() -> None:
    """Whichever comes first, the taints are right in the end."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    assert state.apply_health(NODE, unhealthy("gpu-1")) == {POOL_ID}
    state.apply_inventory(NODE, announced(POOL))
    assert tainted(state.layout_of(POOL_ID)) == ["gpu-1"]
    assert state.apply_health(NODE, unhealthy("gpu-1")) == frozenset()
    assert state.apply_health(NODE, None) == {POOL_ID}
    assert tainted(state.layout_of(POOL_ID)) == []


def test_a_device_ends_its_pods_only_when_its_turn_has_come() -> None:
    """Until then its taint keeps new ones away."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(5.0))
    state.apply_inventory(NODE, announced(POOL))
    ending = DeviceTaint(key=UNHEALTHY, effect="NoExecute")
    judged = unhealthy("gpu-1").devices[0]
    health = replace(unhealthy("gpu-1"), devices=(replace(judged, taints=(ending,)),))
    state.apply_health(NODE, health)

    def effects() -> list[str]:
        layout = state.layout_of(POOL_ID)
        assert isinstance(layout, PoolLayout)
        devices = [device for item in layout.slices for device in item.devices]
        return [taint.effect for device in devices for taint in device.taints]

    assert effects() == ["NoSchedule"]
    assert state.admit_evictions(0.0) == {POOL_ID}
    assert state.nodes_of([POOL_ID]) == {NODE}
    assert effects() == ["NoExecute"]


def test_pool_of_two_nodes_is_in_doubt_until_one_of_them_stops() -> None:
    """While it is in doubt nothing is published anew."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    state.apply_inventory(NODE, announced(POOL))
    state.apply_inventory(OTHER, announced(POOL, node=OTHER))
    assert state.layout_of(POOL_ID) == "announced by several nodes: node-1, node-2"
    assert state.apply_inventory(NODE, None) == {POOL_ID}
    wanted = state.layout_of(POOL_ID)
    assert isinstance(wanted, PoolLayout)
    assert wanted.node == OTHER


def test_what_the_bus_forgets_takes_nothing_from_its_node() -> None:
    """Silence of the bus is no announcement."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    state.apply_inventory(NODE, announced(POOL))
    assert state.has_heard(NODE)
    assert state.apply_inventory(NODE, None) == {POOL_ID}
    assert not state.has_heard(NODE)


def test_pool_that_kubernetes_would_refuse_says_why() -> None:
    """The field that breaks the rule is named."""
    state = AnnouncedPools(lambda *_: False, EvictionBudget(100.0))
    state.apply_inventory(NODE, announced(builders.pool(builders.device("Bad Name"))))
    refused = state.layout_of(POOL_ID)
    assert isinstance(refused, str)
    assert "spec.devices[0].name" in refused
