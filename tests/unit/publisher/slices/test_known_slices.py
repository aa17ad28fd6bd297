"""Our slices are known as they were sent, those of others by their pools."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.device import DeviceTaint, ResourceSlice
from contracts.ids import NodeName, PoolID, PoolName
from contracts.meta import ObjectMeta
from contracts.workload import Node
from publisher.slices.known_slices import ForeignPool, KnownSlices
from publisher.slices.layout import PoolLayout, lay_out, owner_reference_of
from publisher.slices.plan_slices import plan_slices
from publisher.steps import Create
from tests import builders

NOW = "2026-11-20T12:00:00Z"
NODE = NodeName(builders.NODE)
POOL = builders.pool(*builders.devices(2))
POOL_ID = PoolID(POOL.driver, POOL.name)
OBJECT = Node(metadata=ObjectMeta(name=NODE, uid="node-uid"))


def wanted(*, owned: bool = False) -> PoolLayout:
    return lay_out(POOL, NODE, {}, owned=owned)


def sent(pool: PoolLayout) -> ResourceSlice:
    """Give the one slice of a pool as it is created."""
    (step,) = plan_slices(pool, (), now=NOW, owner=owner_reference_of(OBJECT))
    assert isinstance(step, Create)
    return step.object


def stored(item: ResourceSlice, version: int = 1) -> ResourceSlice:
    """Give a slice as the API server answers with it."""
    metadata = replace(item.metadata, uid="uid-1", resource_version=str(version))
    return replace(item, metadata=metadata)


def without_taints(item: ResourceSlice) -> ResourceSlice:
    """Drop what Kubernetes 1.34 drops."""
    bare = tuple(replace(device, taints=()) for device in item.spec.devices)
    return replace(item, spec=replace(item.spec, devices=bare))


def test_fields_that_are_not_kept_are_named_and_not_sent_again() -> None:
    """Until they are forgotten, as after an upgrade of the API server."""
    known, pool = KnownSlices(), wanted(owned=True)
    item = sent(pool)
    kept = without_taints(stored(item))
    assert known.note_written(item, kept) == ("spec.devices[].taints",)
    owner = owner_reference_of(OBJECT)
    assert plan_slices(pool, known.slices(POOL_ID), now="later", owner=owner) == ()
    assert known.forget_dropped() == {POOL_ID}
    assert plan_slices(pool, known.slices(POOL_ID), now="later", owner=owner) != ()


def test_edit_of_a_slice_whose_fields_were_not_kept_is_still_seen() -> None:
    """Only what was dropped is overlooked."""
    known, pool = KnownSlices(), wanted(owned=True)
    item = sent(pool)
    kept = without_taints(stored(item))
    known.note_written(item, kept)
    edited = replace(stored(kept, 2), spec=replace(kept.spec, devices=()))
    assert known.apply_slice(item.metadata.name, edited) == {POOL_ID}
    owner = owner_reference_of(OBJECT)
    assert plan_slices(pool, known.slices(POOL_ID), now="later", owner=owner) != ()


def test_kept_slices_are_no_news_when_the_watch_shows_them() -> None:
    """What we wrote is known before the watch says so."""
    known = KnownSlices()
    item = stored(sent(wanted()))
    assert known.note_written(sent(wanted()), item) == ()
    assert known.apply_slice(item.metadata.name, item) == frozenset()
    assert known.slices(POOL_ID) == (item,)
    assert known.apply_slice(item.metadata.name, None) == {POOL_ID}
    assert tuple(known.pools()) == ()


def test_pool_is_published_where_its_node_is_and_nobody_else_publishes_it() -> None:
    """Without a Node, or beside a foreign slice, it waits and says why."""
    known = KnownSlices()
    assert known.owner_of(wanted()) == "there is no Node node-1"
    assert known.apply_node(NODE, OBJECT)
    assert known.owner_of(wanted()) == owner_reference_of(OBJECT)
    theirs = builders.resource_slice()
    name = theirs.metadata.name
    assert known.apply_slice(name, theirs) == {POOL_ID}
    said = f"somebody else publishes it too: ResourceSlice {name}"
    assert known.owner_of(wanted()) == said
    assert known.foreign() == {ForeignPool(POOL_ID, NODE)}
    assert known.apply_slice(name, None) == {POOL_ID}
    assert known.owner_of(wanted()) == owner_reference_of(OBJECT)
    assert known.foreign() == frozenset()


def test_only_what_slices_depend_on_is_news_of_a_node() -> None:
    """Annotations change no slice, labels may."""
    known = KnownSlices()
    known.apply_node(NODE, OBJECT)
    metadata: ObjectMeta = replace(OBJECT.metadata, annotations={"seen": "now"})
    assert not known.apply_node(NODE, replace(OBJECT, metadata=metadata))
    metadata = replace(metadata, labels={"pool": "training"})
    assert known.apply_node(NODE, replace(OBJECT, metadata=metadata))
    assert known.apply_node(NODE, None)


def test_slice_of_another_pool_under_a_known_name_is_of_that_pool() -> None:
    """Both pools hear of the change."""
    known = KnownSlices()
    first = builders.resource_slice(name="s", pool="a")
    known.apply_slice("s", first)
    second = builders.resource_slice(name="s", pool="b")
    pools = {PoolID(POOL.driver, PoolName(name)) for name in ("a", "b")}
    assert known.apply_slice("s", second) == pools
    assert {item.pool.pool for item in known.foreign()} == {"b"}


def test_taint_added_behind_our_back_is_taken_away() -> None:
    """The slice becomes what we announced."""
    known, pool = KnownSlices(), wanted()
    item = stored(sent(pool))
    known.note_written(sent(pool), item)
    taint = DeviceTaint(key="a.b/c", effect="NoExecute", time_added=NOW)
    devices = tuple(replace(device, taints=(taint,)) for device in item.spec.devices)
    edited = replace(stored(item, 2), spec=replace(item.spec, devices=devices))
    known.apply_slice(item.metadata.name, edited)
    owner = owner_reference_of(OBJECT)
    (step,) = plan_slices(pool, known.slices(POOL_ID), now=NOW, owner=owner)
    assert step.object.spec == item.spec


def test_a_pool_that_is_named_after_another_node_is_not_published() -> None:
    """Its node may be silent for long; what is published of it stays."""
    known, other = KnownSlices(), NodeName("other")
    foreign = replace(wanted(), node=other)
    known.apply_node(other, replace(OBJECT, metadata=ObjectMeta(name=other, uid="u")))
    assert not isinstance(known.owner_of(foreign), str)
    known.apply_node(NODE, OBJECT)
    assert known.owner_of(foreign) == "it is named after another Node than other"
    assert known.owner_of(wanted()) == owner_reference_of(OBJECT)
