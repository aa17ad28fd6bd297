"""ResourceSlices that move, and what that makes of nodes."""

from __future__ import annotations

from contracts.ids import NodeName
from solver.snapshot.inventory import Inventory, with_node
from solver.snapshot.parts import NodePart, PoolPart, node_key
from solver.snapshot.slices import with_slice, with_slices, without_slice
from tests.builders import device, node, resource_slice

LOCAL = resource_slice(name="a", node="n", pool="p")
OF_ALL = resource_slice(name="b", pool="p", all_nodes=True)


def part_of(inventory: Inventory, name: str) -> object:
    return inventory.pages.get(name, node_key(NodeName(name)))


def test_a_node_is_known_once_a_pool_names_it() -> None:
    """Be the pool its own or of several nodes (kubernetes#134466)."""
    both = with_slices(Inventory(), {"a": LOCAL, "b": OF_ALL})
    both = with_node(both, NodeName("other"), node("other"))
    assert isinstance(part_of(both, "n"), NodePart)
    assert part_of(without_slice(both, "a"), "n") is None
    moved = resource_slice(name="b", pool="q", all_nodes=True)
    for alone in (without_slice(both, "b"), with_slice(both, "b", moved)):
        part = part_of(alone, "n")
        assert isinstance(part, NodePart)
        assert part.unavailable == "no Node"
        assert isinstance(part_of(with_slice(alone, "b", OF_ALL), "n"), NodePart)


def test_a_device_names_its_node() -> None:
    """A pool may say node by device."""
    devices = (device("a", node_name=NodeName("n")), device("b"))
    item = resource_slice(*devices, name="a", pool="p", per_device_node_selection=True)
    known = with_slices(Inventory(), {"a": item})
    assert isinstance(part_of(known, "n"), NodePart)
    assert part_of(without_slice(known, "a"), "n") is None


def test_a_slice_that_moves_is_in_its_new_pool_alone() -> None:
    """Its old pool is gone with it."""
    moved = with_slice(
        with_slice(Inventory(), "a", LOCAL), "a", resource_slice(name="a", pool="q")
    )
    pools = [v.pool for v in moved.pages.values() if isinstance(v, PoolPart)]
    assert pools == ["q"]
    assert with_slice(moved, "a", resource_slice(name="a", pool="q")) is moved
