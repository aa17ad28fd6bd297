"""How devices are laid out over slices, and which writes that takes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from contracts.device import DeviceTaint, ResourcePool, ResourceSlice, SlicePool
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolID, PoolName
from contracts.messages import DeviceHealth, HealthJudged
from contracts.meta import OwnerReference
from contracts.validate import validate
from publisher.slices.layout import (
    OWNED_TAINT,
    PoolLayout,
    group_taints,
    index_of,
    is_our_name,
    lay_out,
    name_slice,
    read_outline,
)
from publisher.slices.plan_slices import plan_slices
from publisher.steps import Create, Delete, Step, Update
from tests import builders
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


NOW = "2026-11-20T12:00:00Z"
LATER = "2026-11-20T12:00:09Z"


def wanted(
    pool: ResourcePool, *taints: DeviceTaint, device: str = "gpu-0", owned: bool = False
) -> PoolLayout:
    """Cut a pool whose one device has these taints."""
    identity = DeviceID(pool.driver, pool.name, DeviceName(device))
    item = DeviceHealth(device=identity, verdict="Unhealthy", taints=taints)
    health = HealthJudged(cluster=CLUSTER, node=NODE, devices=(item,))
    of_pool = group_taints(health)[identity.pool_id] if taints else {}
    return lay_out(pool, NODE, of_pool, owned=owned)


def slices(steps: Sequence[Step[ResourceSlice]]) -> list[ResourceSlice]:
    """Give what is created and updated, by name."""
    made = [step.object for step in steps if not isinstance(step, Delete)]
    assert all(validate(item) == () for item in made)
    return sorted(made, key=lambda item: item.metadata.name)


def of_size(count: int) -> ResourcePool:
    """Make a pool of so many devices."""
    return builders.pool(*builders.devices(count))


def test_pool_is_split_at_128_devices_in_the_order_of_names() -> None:
    made = slices(plan_slices(wanted(of_size(300)), (), now=NOW))
    assert [len(item.spec.devices) for item in made] == [128, 128, 44]
    assert [item.spec.devices[0].name for item in made] == [
        "gpu-0",
        "gpu-128",
        "gpu-256",
    ]
    assert {item.spec.pool.resource_slice_count for item in made} == {3}
    assert {item.spec.pool.generation for item in made} == {1}
    assert {item.spec.node_name for item in made} == {NODE}
    assert not any(item.metadata.owner_references for item in made)


def test_tainted_pool_is_split_at_64() -> None:
    made = slices(plan_slices(wanted(of_size(65), builders.taint()), (), now=NOW))
    assert [len(item.spec.devices) for item in made] == [64, 1]


def test_counters_stand_in_slices_of_their_own() -> None:
    sets = [builders.counter_set(f"gpu-{index}") for index in range(9)]
    device = builders.device(consumes={"gpu-0": {"memory": "1Gi"}})
    made = slices(
        plan_slices(wanted(builders.pool(device, counters=sets)), (), now=NOW)
    )
    shape = [(len(i.spec.shared_counters), len(i.spec.devices)) for i in made]
    assert shape == [(8, 0), (1, 0), (0, 1)]


def test_pool_without_devices_is_one_empty_slice() -> None:
    pool = replace(of_size(1), devices=())
    (made,) = slices(plan_slices(wanted(pool), (), now=NOW))
    assert made.spec.devices == ()
    assert made.spec.pool.resource_slice_count == 1


def test_one_changed_slice_is_updated_in_place() -> None:
    pool = builders.pool(*builders.devices(8), generation=7)
    before = slices(plan_slices(wanted(pool), (), now=NOW))
    (step,) = plan_slices(wanted(pool, builders.taint()), before, now=LATER)
    assert isinstance(step, Update)
    (made,) = slices((step,))
    assert made.spec.pool.generation == 7
    assert made.spec.devices[0].taints[0].time_added == LATER


def test_more_than_one_change_gives_all_slices_the_next_generation() -> None:
    before = slices(plan_slices(wanted(of_size(128)), (), now=NOW))
    steps = plan_slices(wanted(of_size(129)), before, now=NOW)
    assert [type(step) for step in steps] == [Update, Create]
    assert {item.spec.pool.generation for item in slices(steps)} == {2}


def test_obsolete_slices_are_deleted_before_others_are_updated() -> None:
    before = slices(plan_slices(wanted(of_size(300)), (), now=NOW))
    steps = plan_slices(wanted(of_size(100)), before, now=NOW)
    assert [type(step) for step in steps] == [Delete, Delete, Update]
    assert slices(steps)[0].spec.pool.generation == 2


def test_pool_that_is_gone_is_deleted() -> None:
    before = slices(plan_slices(wanted(of_size(129)), (), now=NOW))
    steps = plan_slices(None, before, now=NOW)
    assert steps == tuple(map(Delete, before))


def test_taints_keep_the_time_they_were_first_seen() -> None:
    pool = of_size(100)
    before = slices(plan_slices(wanted(pool, builders.taint()), (), now=NOW))
    assert plan_slices(wanted(pool, builders.taint()), before, now=LATER) == ()
    two = wanted(pool, builders.taint(), builders.taint("example.com/hot"))
    (after,) = slices(plan_slices(two, before, now=LATER))
    times = [taint.time_added for taint in after.spec.devices[0].taints]
    assert times == [NOW, LATER]


def test_owned_devices_are_kept_from_kube_scheduler() -> None:
    (made,) = slices(plan_slices(wanted(of_size(2), owned=True), (), now=NOW))
    taints = [taint for item in made.spec.devices for taint in item.taints]
    assert taints == [replace(OWNED_TAINT, time_added=NOW)] * 2


def test_node_with_a_uid_owns_its_slices() -> None:
    node = OwnerReference(api_version="v1", kind="Node", name=NODE, uid="uid-1")
    steps = plan_slices(wanted(of_size(1)), (), now=NOW, owner=node)
    assert slices(steps)[0].metadata.owner_references == (node,)


def test_slice_left_behind_by_a_crash_is_brought_up_in_place() -> None:
    before = slices(plan_slices(wanted(of_size(128)), (), now=NOW))
    after = slices(plan_slices(wanted(of_size(129)), before, now=NOW))
    stale = replace(after[1], spec=replace(after[1].spec, pool=before[0].spec.pool))
    steps = plan_slices(wanted(of_size(129)), (after[0], stale), now=NOW)
    assert steps == (Update(after[1]),)


def test_longest_names_still_make_a_valid_slice() -> None:
    pool = replace(of_size(1), driver=DriverName("d" * 63), name=PoolName("p" * 253))
    node = NodeName(".".join(["n" * 60] * 4))
    made = lay_out(pool, node, {}, owned=False)
    slices(plan_slices(made, (), now=NOW))
    assert name_slice(0, made) != name_slice(0, replace(made, name=PoolName("q")))


def test_slice_is_ours_by_its_name_whatever_was_edited() -> None:
    (made,) = slices(plan_slices(wanted(of_size(2)), (), now=NOW))
    name, spec = made.metadata.name, made.spec
    assert is_our_name(name, spec)
    assert is_our_name(name, replace(spec, devices=()))
    assert not is_our_name(f"{name}0", spec)
    assert not is_our_name(name, replace(spec, pool=SlicePool(name=PoolName("q"))))
    assert not is_our_name(name, replace(spec, node_name=None, all_nodes=True))
    theirs = builders.resource_slice()
    assert not is_our_name(theirs.metadata.name, theirs.spec)
