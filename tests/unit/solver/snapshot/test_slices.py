"""ResourceSlices that move, and what that makes of nodes."""

from __future__ import annotations

import re

import pytest

from contracts.device import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from contracts.errors import DecodeError
from contracts.ids import NodeName
from solver.snapshot.inventory import Inventory, with_node
from solver.snapshot.parts import NodePart, PoolPart, node_key
from solver.snapshot.slices import (
    check_selection,
    with_slice,
    with_slices,
    without_slice,
)
from tests.builders import device, node, resource_slice

LOCAL = resource_slice(name="a", node="n", pool="p")
OF_ALL = resource_slice(name="b", pool="p", all_nodes=True)


def part_of(inventory: Inventory, name: str) -> object:
    return inventory.pages.get(name, node_key(NodeName(name)))


def test_a_node_is_known_once_a_pool_is_its_own() -> None:
    """Also when that is because another slice of the pool is gone, or moved away."""
    both = with_slices(Inventory(), {"a": LOCAL, "b": OF_ALL})
    both = with_node(both, NodeName("other"), node("other"))
    assert part_of(both, "n") is None
    moved = resource_slice(name="b", pool="q", all_nodes=True)
    for alone in (without_slice(both, "b"), with_slice(both, "b", moved)):
        part = part_of(alone, "n")
        assert isinstance(part, NodePart)
        assert part.unavailable == "no Node"
        assert part_of(with_slice(alone, "b", OF_ALL), "n") is None


def test_a_slice_that_moves_is_in_its_new_pool_alone() -> None:
    """Its old pool is gone with it."""
    moved = with_slice(
        with_slice(Inventory(), "a", LOCAL), "a", resource_slice(name="a", pool="q")
    )
    pools = [v.pool for v in moved.pages.values() if isinstance(v, PoolPart)]
    assert pools == ["q"]
    assert with_slice(moved, "a", resource_slice(name="a", pool="q")) is moved


def selecting(key: str, operator: str, *values: str) -> NodeSelector:
    """Select nodes by a label."""
    label = NodeSelectorRequirement(key=key, operator=operator, values=values)
    return NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_expressions=(label,)),)
    )


@pytest.mark.parametrize(
    ("selector", "field", "reason"),
    [
        (selecting("", "Exists"), ".key", "Invalid value"),
        (selecting("a", ""), ".operator", "Invalid value"),
        (selecting("a", "In"), ".values", "Required value"),
        (selecting("a", "Gt", "x"), ".values[0]", "must be an integer"),
    ],
)
def test_a_slice_that_no_node_can_be_told_of_is_refused(
    selector: NodeSelector, field: str, reason: str
) -> None:
    """By its name, field and reason; in the slice itself and in each device."""
    whole = resource_slice(name="a", pool="p", node_selector=selector)
    devices = [device("first"), device("second", node_selector=selector)]
    by_device = resource_slice(
        *devices, name="a", pool="p", per_device_node_selection=True
    )
    for refused, place in ((whole, "spec"), (by_device, "spec.devices[1]")):
        where = f"{place}.nodeSelector.nodeSelectorTerms[0].matchExpressions[0]{field}"
        said = rf"ResourceSlice a: {re.escape(where)}: {reason}"
        with pytest.raises(DecodeError, match=said):
            check_selection("a", refused)


def test_slices_of_some_nodes_of_one_and_of_all_are_taken() -> None:
    for selector in (selecting("a", "Gt", "4"), selecting("a", "In", "b", "c")):
        check_selection("a", resource_slice(name="a", node_selector=selector))
    check_selection("a", LOCAL)
    check_selection("b", OF_ALL)
