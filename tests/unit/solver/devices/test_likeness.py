"""What is equal in what decides is alike; names and what nobody reads do not count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from contracts.allocation import AllocationResult, DeviceAllocationResult
from contracts.claim import ResourceClaimStatus
from contracts.device import ResourcePool
from contracts.features import Features
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.quantity import Quantity
from solver.devices.gather import Cluster, NodePools
from solver.devices.likeness import likeness_of, number_equal, values_of
from tests.builders import DRIVER, claim, device, pool, result, taint
from tests.builders.problems import observe, snapshot_of

MODEL = f'device.attributes["{DRIVER}"].model == "a"'


def gpu(node: str, model: str = "a", **fields: Any) -> ResourcePool:
    attributes = {"model": model, "uuid": node}
    return pool(device("gpu", attributes=attributes, **fields), name=node)


def nodes_of(*pools: Sequence[ResourcePool], **world: Any) -> list[NodePools]:
    """Make a node of each list of pools, by name."""
    snapshot = snapshot_of({each[0].name: each for each in pools}, **world)
    cluster = Cluster(tuple(snapshot.inventory.pages), Features())
    return [cluster.nodes[NodeName(each[0].name)] for each in pools]


def test_nodes_with_equal_devices_are_alike() -> None:
    """Whatever they, their pools and their uuids are called."""
    one, other = nodes_of([gpu("n0")], [gpu("n1")])
    assert likeness_of(one, (MODEL,)) == likeness_of(other, (MODEL,)) is not None


@pytest.mark.parametrize(
    "other",
    [
        [gpu("n1", "b")],
        [pool(device("gpu-1", attributes={"model": "a"}), name="n1")],
        [gpu("n1"), gpu("n1-2")],
    ],
    ids=["what is read", "name", "pools"],
)
def test_what_differs_in_what_is_read_is_not(other: list[ResourcePool]) -> None:
    """Nor are nodes of other devices or of more pools."""
    one, another = nodes_of([gpu("n0")], other)
    assert likeness_of(another, (MODEL,)) is not None
    assert likeness_of(one, (MODEL,)) != likeness_of(another, (MODEL,))


def test_a_taken_device_sets_a_node_apart() -> None:
    """By who it is."""
    held = DeviceID(DriverName(DRIVER), PoolName("n1"), DeviceName("gpu"))
    one, other = nodes_of([gpu("n0")], [gpu("n1")], taken=[held])
    assert likeness_of(one, ()) != likeness_of(other, ()) is not None


@pytest.mark.parametrize(
    "fields", [{"taints": (taint(),)}, {"binding_conditions": ("ready",)}]
)
def test_what_says_more_than_facts_do_is_like_no_other(fields: dict[str, Any]) -> None:
    """Facts say that a device has it, not what it is."""
    (node,) = nodes_of([gpu("n0", **fields)])
    assert likeness_of(node, ()) is None


SHARED: dict[str, Any] = {"allow_multiple_allocations": True}


@pytest.mark.parametrize("fields", [SHARED, {}], ids=["shared", "asked for by amount"])
def test_where_amounts_count_what_there_is_decides(fields: dict[str, Any]) -> None:
    """Be it for a device that is had in shares, or as amounts are asked for."""
    one, alike, other = nodes_of(
        [gpu("n0", capacity={"memory": 10}, **fields)],
        [gpu("n1", capacity={"memory": 10}, **fields)],
        [gpu("n2", capacity={"memory": 20}, **fields)],
    )
    asked = likeness_of(one, (MODEL,), by_amounts=True)
    assert asked == likeness_of(alike, (MODEL,), by_amounts=True) is not None
    assert asked != likeness_of(other, (MODEL,), by_amounts=True)
    is_seen = likeness_of(one, (MODEL,)) != likeness_of(other, (MODEL,))
    assert is_seen == bool(fields)


def test_what_shares_consume_sets_a_node_apart() -> None:
    """Equal amounts of the same device do not."""
    amounts = {"n0": 0, "n1": 3, "n2": 3, "n3": 4}
    pools = {
        name: [gpu(name, capacity={"memory": 10}, **SHARED)] for name in sorted(amounts)
    }
    snapshot = snapshot_of(pools)
    for name, amount in amounts.items():
        if amount:
            held = result(
                "gpu",
                pool=name,
                share_id=f"s-{name}",
                consumed_capacity={"memory": Quantity.of(amount)},
            )
            allocation = AllocationResult(
                devices=DeviceAllocationResult(results=(held,))
            )
            holder = structs.replace(
                claim(name=name), status=ResourceClaimStatus(allocation=allocation)
            )
            snapshot = observe(snapshot, f"default/{name}", holder)
    nodes = Cluster(tuple(snapshot.inventory.pages), Features()).nodes
    found = [likeness_of(nodes[NodeName(name)], ()) for name in sorted(amounts)]
    free, one, alike, other = found
    assert one == alike is not None
    assert len({free, one, other}) == 3


def test_a_sick_device_makes_a_node_like_no_other() -> None:
    """What taints it came by health, not by its slice."""
    sick = DeviceID(DriverName(DRIVER), PoolName("n0"), DeviceName("gpu"))
    one, other = nodes_of([gpu("n0")], [gpu("n1")], taints={sick: taint()})
    assert likeness_of(one, ()) is None
    assert likeness_of(other, ()) is not None


def test_values_have_their_kinds_and_their_drivers_names() -> None:
    """1, "1" and true differ; a bare name is of the driver's own domain."""
    values: tuple[int | str, ...] = (1, "1", True, 1)
    made = [device(f"d{i}", attributes={"x": each}) for i, each in enumerate(values)]
    full = device("d4", attributes={f"{DRIVER}/x": "1", "x": "2"})
    (node,) = nodes_of([pool(*made, full, device("d5"), name="n0")])
    found = values_of(node, f"{DRIVER}/x")
    assert found is not None
    assert number_equal(found) == (1, 2, 3, 1, 2, 0)
    assert values_of(node, "other.example.com/x") == (None,) * 6


def test_a_list_is_equal_to_nothing_by_one_value() -> None:
    """It may share an element with several."""
    listed = device("d0", attributes={"x": (1, 2)})
    (node,) = nodes_of([pool(listed, name="n0")])
    assert values_of(node, f"{DRIVER}/x") is None
