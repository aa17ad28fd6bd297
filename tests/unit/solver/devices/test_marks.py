"""Devices with something that most lack are found by what they say."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.device import CapacityRequestPolicy, DeviceCapacity
from contracts.ids import NodeName
from solver.devices.marks import Marks, marks_of
from solver.snapshot.parts import NodePart, Part
from solver.snapshot.pools import pool_of_inventory
from tests.builders import device, pool, quantity, taint


def marked(**fields: Any) -> Marks:
    """Mark a pool of a plain device and one with these fields."""
    made = pool(device("plain"), device("odd", **fields))
    return marks_of(Part(pool_of_inventory(made, NodeName("n"))))


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
    ],
)
def test_a_device_is_marked_for_what_it_says(
    fields: dict[str, Any], marks: Marks
) -> None:
    """The second device of the pool is bit 1; the plain one is never marked."""
    assert marked(**fields) == marks


def test_marks_are_found_once_for_each_pool() -> None:
    """Whoever asks again gets the very same."""
    part = Part(pool_of_inventory(pool(device(taints=(taint(),))), NodeName("n")))
    assert marks_of(part) is marks_of(part)
    other = Part(structs.replace(part.value, contested="x"))
    assert marks_of(other) is not marks_of(part)
    with pytest.raises(TypeError, match="node/n"):
        marks_of(Part(NodePart(name=NodeName("n"))))
