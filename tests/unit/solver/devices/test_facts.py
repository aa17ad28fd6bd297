"""What is known of a pool before anybody asks: shared by pools that are made alike."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.device import CapacityRequestPolicy, DeviceAttribute, DeviceCapacity
from contracts.ids import NodeName
from solver.devices.facts import Marks, PoolFacts, facts_of, marks_of
from solver.snapshot.parts import NodePart, Part, PoolPart, PoolSlice
from solver.snapshot.pools import pool_of_inventory
from tests.builders import device, pool, quantity, taint


def part_of(*devices: Any, node: str = "n") -> Part:
    return Part(pool_of_inventory(pool(*devices), NodeName(node)))


def facts(*devices: Any, node: str = "n") -> PoolFacts:
    return facts_of(part_of(*devices, node=node))


def marked(**fields: Any) -> Marks:
    """Mark a pool of a plain device and one with these fields."""
    return marks_of(part_of(device("plain"), device("odd", **fields)))


POLICED = DeviceCapacity(
    value=quantity("8Gi"), request_policy=CapacityRequestPolicy(default=quantity(1))
)


@pytest.mark.parametrize(
    ("fields", "marks"),
    [
        ({}, Marks()),
        ({"capacity": {"memory": "8Gi"}}, Marks()),
        ({"consumes": {"c": {"memory": 1}}}, Marks(counting=2)),
        ({"binding_conditions": ("ready",)}, Marks(binding=2, says_binding=2)),
        ({"binding_conditions": ()}, Marks(says_binding=2)),
        ({"taints": (taint(),)}, Marks(tainted=2)),
        ({"capacity": {"memory": POLICED}}, Marks(metered=2)),
        ({"capacity": {"memory": -1}}, Marks(metered=2)),
        ({"allow_multiple_allocations": True}, Marks(shareable=2)),
    ],
)
def test_a_device_is_marked_for_what_it_says(
    fields: dict[str, Any], marks: Marks
) -> None:
    """The second device of the pool is bit 1; the plain one is never marked."""
    assert marked(**fields) == marks


def test_facts_are_found_once_for_each_pool() -> None:
    """Whoever asks again gets the very same."""
    part = part_of(device("a", taints=(taint(),)), device("b"))
    assert facts_of(part) is facts_of(part)
    assert facts_of(part).names == ("a", "b")
    assert facts_of(part).all_devices == 3
    with pytest.raises(TypeError, match="node/n"):
        marks_of(Part(NodePart(name=NodeName("n"))))


def test_pools_that_are_made_alike_share_their_facts() -> None:
    """Attributes and nodes may differ: nothing of them is in the facts."""
    one = facts(device("a", attributes={"uuid": "1"}), device("b"))
    other = facts(device("a", attributes={"uuid": "2"}), device("b"), node="other")
    assert one is other


@pytest.mark.parametrize(
    "odd",
    [
        device("c"),
        device("b", taints=(taint(),)),
        structs.replace(device("b"), attributes={"x": DeviceAttribute()}),
    ],
    ids=["name", "mark", "fault"],
)
def test_what_differs_in_a_name_a_mark_or_a_fault_shares_nothing(odd: Any) -> None:
    """Else a rule about one pool would be taken for one about the other."""
    assert facts(device("a"), odd) is not facts(device("a"), device("b"))


def test_names_that_slices_share_stand_for_all_their_devices() -> None:
    """Of a name that two slices use, both devices are meant."""
    slices = (
        PoolSlice(name="s-0", devices=(device("a"), device("b"))),
        PoolSlice(name="s-1", devices=(device("a"),)),
    )
    template = part_of(device("a")).value
    assert isinstance(template, PoolPart)
    found = facts_of(
        Part(PoolPart(driver=template.driver, pool=template.pool, slices=slices))
    )
    assert found.bits_by_name == {"a": 0b101, "b": 0b010}
    assert not found.has_unique_names
    assert facts(device("a"), device("b")).has_unique_names
