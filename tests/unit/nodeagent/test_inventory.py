"""Generations and differences of announcements."""

from __future__ import annotations

from contracts.device import Device, ResourcePool
from contracts.ids import ClusterName, DriverName, NodeName, PoolID, PoolName
from contracts.quantity import Quantity
from contracts.topics import INVENTORIES
from nodeagent.inventory import (
    AnnouncedNode,
    NodeDevices,
    announce,
    find_change,
    restore,
)
from tests.builders import device, devices

CLUSTER, NODE = ClusterName("c"), NodeName("n")
A = PoolID(DriverName("d.io"), PoolName("a"))
B = PoolID(DriverName("d.io"), PoolName("b"))


def found(
    labels: dict[str, str] | None = None, **pools: tuple[Device, ...]
) -> NodeDevices:
    return NodeDevices(
        node=NODE,
        labels=labels or {},
        resources={"cpu": Quantity.parse("8")},
        pools=tuple(
            ResourcePool(driver=A.driver, name=PoolName(name), devices=content)
            for name, content in pools.items()
        ),
    )


def generations(announced: AnnouncedNode) -> dict[PoolID, int]:
    return {pool_id: pool.generation for pool_id, pool in announced.pools.items()}


def test_a_first_announcement_is_all_difference() -> None:
    """Everything is new, with the first generation."""
    message, announced = announce(CLUSTER, found(a=devices(2)), None)
    assert [pool.generation for pool in message.pools] == [1]
    change = find_change(None, announced)
    assert change is not None
    assert change.pools == (A,)


def test_an_equal_inventory_is_no_difference() -> None:
    """Equal devices get no new generation, and are no news."""
    _, first = announce(CLUSTER, found(a=devices(2)), None)
    _, second = announce(CLUSTER, found(a=devices(2)), first)
    assert find_change(first, second) is None
    assert second == first


def test_only_the_changed_pool_gets_a_new_generation() -> None:
    """Pools beside it stay as they were announced."""
    _, first = announce(CLUSTER, found(a=devices(2), b=devices(2)), None)
    changed = (device("gpu-0", attributes={"model": "x"}), device("gpu-1"))
    _, second = announce(CLUSTER, found(a=devices(2), b=changed), first)
    assert generations(second) == {A: 1, B: 2}
    change = find_change(first, second)
    assert change is not None
    assert change.pools == (B,)


def test_labels_alone_are_a_difference_without_a_generation() -> None:
    """Generations are of devices; labels are of the node."""
    _, first = announce(CLUSTER, found(a=devices(1)), None)
    _, second = announce(CLUSTER, found({"rack": "r1"}, a=devices(1)), first)
    assert generations(second) == {A: 1}
    change = find_change(first, second)
    assert change is not None
    assert change.pools == ()


def test_a_pool_that_returns_goes_on_counting() -> None:
    """A generation is never given twice, even where the pool was away."""
    _, first = announce(CLUSTER, found(a=devices(1)), None)
    message, without = announce(CLUSTER, found(), first)
    assert message.pools == ()
    change = find_change(first, without)
    assert change is not None
    assert change.pools == (A,)
    _, again = announce(CLUSTER, found(a=devices(1)), without)
    assert generations(again) == {A: 2}


def test_the_order_in_which_pools_are_found_does_not_matter() -> None:
    """Equal content is one message."""
    one, _ = announce(CLUSTER, found(a=devices(1), b=devices(1)), None)
    other, _ = announce(CLUSTER, found(b=devices(1), a=devices(1)), None)
    assert one == other


def test_a_recalled_announcement_goes_on_where_it_was() -> None:
    """A restart bumps nothing: what the bus gives back is what was remembered."""
    _, first = announce(CLUSTER, found(a=devices(1)), None)
    message, second = announce(CLUSTER, found(a=devices(3)), first)
    stored = INVENTORIES.codec.decode(INVENTORIES.codec.encode(message))
    _, after_restart = announce(CLUSTER, found(a=devices(3)), restore(stored))
    assert find_change(second, after_restart) is None
    assert generations(after_restart) == {A: 2}
