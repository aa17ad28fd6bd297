"""Where a pool is split, how its slices are named, and which taints devices carry."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.ids import DeviceID, NodeName, PoolID
from contracts.messages import DeviceHealth, HealthJudged
from publisher.slices.layout import (
    OWNED_TAINT,
    group_taints,
    index_of,
    is_our_name,
    lay_out,
    name_slice,
    read_outline,
)
from tests.builders import counter_set, device, devices, pool, taint
from tests.builders.decisions import CLUSTER

NODE = NodeName("node-1")


def test_counters_come_before_devices_in_slices_of_their_own() -> None:
    """An empty pool is one empty slice."""
    counted = pool(*devices(3), counters=[counter_set("a"), counter_set("b")])
    layout = lay_out(counted, NODE, {}, owned=False)
    sizes = [(len(s.shared_counters), len(s.devices)) for s in layout.slices]
    assert sizes == [(2, 0), (0, 3)]
    full = lay_out(pool(*devices(129)), NODE, {}, owned=False)
    assert [len(s.devices) for s in full.slices] == [128, 1]


def test_owned_devices_are_tainted_and_fit_in_smaller_slices() -> None:
    """A slice with taints holds 64 devices at most."""
    layout = lay_out(pool(*devices(65)), NODE, {}, owned=True)
    assert [len(s.devices) for s in layout.slices] == [64, 1]
    taints = {d.taints for s in layout.slices for d in s.devices}
    assert taints == {(OWNED_TAINT,)}


def test_a_taint_that_the_device_has_already_is_not_repeated() -> None:
    """Its own wins, so that a driver's time stays."""
    own = replace(taint("k", "own"), time_added="2026-11-20T12:00:00Z")
    made = pool(device("a", taints=(own,)))
    found = {made.devices[0].name: (taint("k", "own"), taint("sick"))}
    (piece,) = lay_out(made, NODE, found, owned=False).slices
    assert piece.devices[0].taints == (own, taint("sick"))


def test_a_name_says_place_and_pool_and_nobody_else_makes_it() -> None:
    """A slice under our name that is of another pool or node is not ours."""
    layout = lay_out(pool(*devices(129)), NODE, {}, owned=False)
    names = [name_slice(index, layout) for index in range(2)]
    assert names == sorted(names)
    assert [index_of(name) for name in names] == [0, 1]
    spec = layout.slices[0]
    assert is_our_name(names[0], spec)
    elsewhere = lay_out(pool(), NodeName("node-2"), {}, owned=False).slices[0]
    assert not is_our_name(names[0], elsewhere)
    assert not is_our_name("node-1-gpu", spec)
    assert index_of("node-1-gpu") is None


def test_taints_of_health_are_grouped_by_pool_and_device() -> None:
    """Two findings about one device add up; without health there are none."""
    made = pool()
    name = DeviceID(made.driver, made.name, made.devices[0].name)
    sick = tuple(
        DeviceHealth(device=name, verdict="Unhealthy", taints=(taint(key),))
        for key in ("a", "b")
    )
    judged = HealthJudged(cluster=CLUSTER, node=NODE, devices=sick)
    found = group_taints(judged)[PoolID(made.driver, made.name)]
    assert found == {name.device: (taint("a"), taint("b"))}
    assert group_taints(None) == {}


def test_the_outline_of_a_slice_is_read_in_every_version() -> None:
    """An empty node name is none, as v1beta1 writes it."""
    spec = {"driver": "d.io", "pool": {"name": "p"}, "nodeName": ""}
    outline = read_outline({"spec": spec})
    assert (outline.driver, outline.pool.name, outline.node_name) == ("d.io", "p", None)
