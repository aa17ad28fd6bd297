"""Parts: whose they are, how they are named, and what follows from them."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.ids import DeviceClassName, DriverName, NodeName, PoolName
from solver.snapshot.parts import (
    ClassPart,
    NodePart,
    Part,
    PartValue,
    PoolPart,
    PoolSlice,
    UsePart,
)
from tests.builders import DRIVER, device

POOL: dict[str, Any] = {"driver": DriverName(DRIVER), "pool": PoolName("p")}


@pytest.mark.parametrize(
    ("value", "owner", "key"),
    [
        (PoolPart(**POOL, node=NodeName("n")), "n", f"pool/{DRIVER}/p"),
        (PoolPart(**POOL), "", f"pool/{DRIVER}/p"),
        (UsePart(**POOL, node=NodeName("n")), "n", f"use/{DRIVER}/p"),
        (NodePart(name=NodeName("n")), "n", "node/n"),
        (ClassPart(name=DeviceClassName("gpu")), "", "class/gpu"),
    ],
)
def test_a_part_belongs_to_its_node_or_to_the_cluster(
    value: PartValue, owner: str, key: str
) -> None:
    """Where it lies follows from what it is, and so after reading it back."""
    part = Part(value)
    assert (part.owner, part.key) == (owner, key)
    read = Part.decode(part.data)
    assert (read.value, read.owner, read.key) == (value, owner, key)


def test_devices_are_counted_slice_by_slice() -> None:
    """Bit i of a set of devices is the i-th device of all slices."""
    slices = tuple(
        PoolSlice(name=name, devices=(device(f"{name}-0"), device(f"{name}-1")))
        for name in ("a", "b")
    )
    part = PoolPart(**POOL, slices=slices)
    assert [d.name for d in part.devices] == ["a-0", "a-1", "b-0", "b-1"]
    assert PoolPart(**POOL, slices=slices[:1]).devices == slices[0].devices
