"""Pools as their node agents announce them, and as ResourceSlices say them."""

from __future__ import annotations

from contracts.ids import NodeName
from solver.snapshot.pools import pool_of_collision, pool_of_inventory, pool_of_slices
from tests.builders import DRIVER, NODE, counter_set, device, pool, resource_slice


def test_counters_of_an_announced_pool_lie_in_a_slice_of_their_own() -> None:
    """As in the slices that are published; without counters one slice is enough."""
    plain = pool_of_inventory(pool(), NodeName("n"))
    counted = pool_of_inventory(pool(counters=[counter_set()]), NodeName("n"))
    assert [s.name for s in plain.slices] == ["devices"]
    assert [s.name for s in counted.slices] == ["counters", "devices"]
    for part in (plain, counted):
        assert {s.slice_count for s in part.slices} == {len(part.slices)}
        assert {s.node_name for s in part.slices} == {"n"}


def test_a_pool_of_two_agents_says_who_they_are() -> None:
    """Nobody may use it, and the names are in one order whoever came first."""
    nodes = [NodeName("b"), NodeName("a")]
    part = pool_of_collision(pool(), nodes)
    name = f"{DRIVER}/{NODE}"
    assert part.contested == f"pool {name} is announced by nodes a and b"
    assert part == pool_of_collision(pool(), reversed(nodes))


def test_slices_are_in_the_order_of_their_names() -> None:
    """As kube-scheduler takes them, by bytes."""
    slices = {
        name: resource_slice(device(name), name=name, node="n", pool="p")
        for name in ("b", "a", "a-0")
    }
    assert [s.name for s in pool_of_slices(slices).slices] == ["a", "a-0", "b"]


def test_a_pool_is_of_a_node_if_every_slice_names_that_node() -> None:
    """Slices of two nodes, or of none, make it the cluster's."""
    here = resource_slice(name="here", node="n", pool="p")
    there = resource_slice(name="there", node="m", pool="p")
    anywhere = resource_slice(name="any", pool="p", all_nodes=True)
    assert pool_of_slices({"a": here}).node == "n"
    assert pool_of_slices({"a": here, "b": there}).node == ""
    assert pool_of_slices({"a": here, "b": anywhere}).node == ""
