"""Several sources of one node: none is in another's way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from contracts.device import Device, DeviceAttribute, ResourcePool
from contracts.ids import (
    ClusterName,
    DeviceID,
    DeviceName,
    DriverName,
    NodeName,
    PoolID,
    PoolName,
)
from contracts.messages import MAX_NODE_DEVICES, MAX_NODE_POOLS, DevicesAnnounced
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import SourceError
from nodeagent.health import Reading, Symptom
from nodeagent.inventory import NodeDevices
from nodeagent.sources.combined import CombinedSource
from nodeagent.sources.part import Additions, SourcePart
from nodeagent.sources.source import DeviceDescription, PartitionHooks, Readings

NODE, POOL = NodeName("n"), PoolName("n")


class _Scripted:
    """A source that does what a test says."""

    def __init__(self, driver: str, *devices: str) -> None:
        self.driver = DriverName(driver)
        self.devices = [Device(name=DeviceName(name)) for name in devices]
        self.symptoms: tuple[Reading, ...] = ()
        self.read_count = 0
        self.before_read: Callable[[], object] = lambda: None
        self.before_list: Callable[[], object] = lambda: None
        self.gate = asyncio.Event()
        self.gate.set()

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        return (NODE,)

    @property
    def drivers(self) -> tuple[DriverName, ...]:
        return (self.driver,)

    async def discover(self, node: NodeName) -> NodeDevices:
        self.before_list()
        pool = ResourcePool(driver=self.driver, name=POOL, devices=tuple(self.devices))
        return NodeDevices(node=node, pools=(pool,))

    async def read(self, now_s: float) -> Readings:
        del now_s
        self.read_count += 1
        self.before_read()
        await self.gate.wait()
        return Readings(symptoms={NODE: self.symptoms})

    async def edits(self, device: DeviceID) -> ContainerEdits:
        return ContainerEdits(env=(f"DEVICE={device.device}",))

    async def describe(self, device: DeviceID) -> DeviceDescription:
        return DeviceDescription(data={"name": device.device})

    def find_hooks(self, device: DeviceID) -> PartitionHooks | None:
        return PartitionHooks(set_up=(f"/make/{device.device}",))

    def id_of(self, name: str) -> DeviceID:
        return DeviceID(self.driver, POOL, DeviceName(name))


def part(
    source: _Scripted, read_s: float = 1.0, **added: DeviceAttribute
) -> SourcePart:
    return SourcePart(
        str(source.driver),
        source,
        NODE,
        read_s=read_s,
        pool=PoolID(source.driver, POOL),
        additions=Additions(attributes=added, edits=ContainerEdits(env=("FROM=file",))),
    )


def combine(*sources: _Scripted) -> CombinedSource:
    return CombinedSource(NODE, tuple(map(part, sources)))


def fail() -> None:
    raise SourceError("scripted", "cable cut")


def crash() -> None:
    raise ZeroDivisionError


def drivers_of(devices: NodeDevices) -> list[str]:
    return [str(pool.driver) for pool in devices.pools]


async def test_all_pools_are_announced_as_one_node() -> None:
    """In the order of the file."""
    combined = combine(_Scripted("b.io", "x"), _Scripted("a.io", "y"))
    assert drivers_of(await combined.discover(NODE)) == ["b.io", "a.io"]
    assert combined.drivers == ("a.io", "b.io")


async def test_devices_of_other_drivers_are_watched_and_not_announced() -> None:
    """Nothing of them is ours: neither slices nor a kubelet plugin nor labels."""
    ours, theirs = _Scripted("a.io", "x"), _Scripted("gpu.nvidia.com", "gpu-0")
    bad = Reading(theirs.id_of("gpu-0"), Symptom.BAD, "XID 79", "Xid79")
    theirs.symptoms = (bad,)
    watching = SourcePart("theirs", theirs, NODE, read_s=1.0, health_only=True)
    combined = CombinedSource(NODE, (part(ours), watching))
    found = await combined.discover(NODE)
    assert combined.drivers == ("a.io",)
    assert drivers_of(found) == ["a.io"]
    assert found.watched == (theirs.id_of("gpu-0"),)
    assert found.device_ids == (ours.id_of("x"), theirs.id_of("gpu-0"))
    assert (await combined.read(1.0)).symptoms == {NODE: (bad,)}


async def test_a_device_of_another_driver_that_is_gone_is_silent() -> None:
    """That driver may offer it still, so its verdict must not go with it."""
    theirs = _Scripted("gpu.nvidia.com", "gpu-0", "gpu-1")
    watching = SourcePart("theirs", theirs, NODE, read_s=1.0, health_only=True)
    combined = CombinedSource(NODE, (watching,))
    await combined.discover(NODE)
    lost = theirs.devices.pop(0)
    found = await combined.discover(NODE)
    assert set(found.watched) == {theirs.id_of("gpu-0"), theirs.id_of("gpu-1")}
    (silent,) = (await combined.read(1.0)).symptoms[NODE]
    assert (silent.device, silent.symptom, silent.reason) == (
        theirs.id_of("gpu-0"),
        Symptom.SILENT,
        "NotListed",
    )
    theirs.devices.append(lost)
    await combined.discover(NODE)
    assert (await combined.read(2.0)).symptoms == {NODE: ()}


@pytest.mark.parametrize("problem", [fail, crash])
async def test_a_source_that_fails_is_silent_alone(problem: Callable[[], None]) -> None:
    """Also by a mistake of ours; its devices stay announced."""
    good, bad = _Scripted("a.io", "x"), _Scripted("b.io", "y", "z")
    combined = combine(good, bad)
    await combined.discover(NODE)
    bad.before_read = bad.before_list = problem
    symptoms = (await combined.read(1.0)).symptoms[NODE]
    assert {(found.device, found.symptom) for found in symptoms} == {
        (bad.id_of("y"), Symptom.SILENT),
        (bad.id_of("z"), Symptom.SILENT),
    }
    assert {found.reason for found in symptoms} == {"SourceFailed"}
    assert len((await combined.discover(NODE)).device_ids) == 3


async def test_a_source_that_cannot_list_is_asked_again() -> None:
    """After a while, and heard once it can."""
    source = _Scripted("a.io", "x")
    combined = combine(source)
    source.before_list = fail
    assert (await combined.discover(NODE)).pools == ()
    changed = [bool((await combined.read(float(t))).changed) for t in range(7)]
    assert changed == [False] * 5 + [True] + [False]
    source.before_list = lambda: None
    assert len((await combined.discover(NODE)).device_ids) == 1
    assert (await combined.read(20.0)).symptoms == {NODE: ()}


async def test_what_was_announced_before_a_restart_stays_until_it_is_listed() -> None:
    """A source that fails at the start takes no devices from anybody."""
    good, bad = _Scripted("a.io", "x"), _Scripted("b.io", "y")
    before = await combine(good, bad).discover(NODE)
    bad.before_list = fail
    combined = combine(good, bad)
    combined.recall(
        DevicesAnnounced(cluster=ClusterName("c"), node=NODE, pools=before.pools)
    )
    assert (await combined.discover(NODE)).pools == before.pools
    bad.before_list = lambda: None
    bad.devices = []
    assert (await combined.discover(NODE)).device_ids == (good.id_of("x"),)


async def test_a_slow_source_delays_no_other() -> None:
    """Until it answers nothing new is known of its devices; later they are silent."""
    quick, slow = _Scripted("a.io", "x"), _Scripted("b.io", "y")
    combined = combine(quick, slow)
    await combined.discover(NODE)
    slow.gate.clear()
    quick.symptoms = (Reading(quick.id_of("x"), Symptom.BAD, "hot"),)
    readings = await combined.read(1.0)
    assert readings.symptoms[NODE] == quick.symptoms
    assert readings.unread == {slow.id_of("y")}

    late = (await combined.read(12.0)).symptoms[NODE]
    assert [found.device for found in late if found.symptom is Symptom.SILENT] == [
        slow.id_of("y")
    ]
    slow.gate.set()
    await asyncio.sleep(0)
    assert slow.read_count == 1
    assert (await combined.read(12.1)).symptoms == {NODE: ()}
    await combined.close()


async def test_each_source_is_read_at_its_own_pace() -> None:
    """Between its turns its devices are unread, not good."""
    often, seldom = _Scripted("a.io", "x"), _Scripted("b.io", "y")
    combined = CombinedSource(NODE, (part(often, 0.25), part(seldom, 1.0)))
    await combined.discover(NODE)
    unread = [(await combined.read(10 + t / 4)).unread for t in range(5)]
    away = {seldom.id_of("y")}
    assert unread == [set(), away, away, away, set()]
    assert (often.read_count, seldom.read_count) == (5, 2)


async def test_a_device_that_cannot_be_taken_is_silent() -> None:
    """It is not lost at once; the others of its source are read."""
    source = _Scripted("a.io", "x", "y")
    combined = combine(source)
    before = await combined.discover(NODE)
    huge = DeviceAttribute(string_value="x" * 99)
    source.devices[0] = Device(name=DeviceName("x"), attributes={"model": huge})
    assert await combined.discover(NODE) == before
    (found,) = (await combined.read(1.0)).symptoms[NODE]
    assert (found.device, found.symptom, found.reason) == (
        source.id_of("x"),
        Symptom.SILENT,
        "DeviceRefused",
    )


async def test_parts_that_do_not_fit_together_are_left_out() -> None:
    """The first that has a pool keeps it, and a node has its most devices."""
    first, twin = _Scripted("a.io", "x"), _Scripted("a.io", "y")
    many = _Scripted("b.io", *(f"d-{index}" for index in range(MAX_NODE_DEVICES)))
    combined = combine(first, twin, many)
    assert (await combined.discover(NODE)).device_ids == (first.id_of("x"),)


async def test_a_node_has_its_most_pools() -> None:
    """Empty ones count, too."""
    parts = [_Scripted(f"d{number}.io", "x") for number in range(MAX_NODE_POOLS + 1)]
    found = await combine(*parts).discover(NODE)
    assert len(found.pools) == MAX_NODE_POOLS


async def test_containers_get_what_source_and_file_say() -> None:
    """By the part that has the device; others are not asked."""
    a, b = _Scripted("a.io", "x"), _Scripted("b.io", "y")
    combined = combine(a, b)
    with pytest.raises(SourceError, match=r"b.io/n/y is not here"):
        await combined.edits(b.id_of("y"))
    await combined.discover(NODE)
    assert (await combined.edits(b.id_of("y"))).env == ("DEVICE=y", "FROM=file")
    assert (await combined.describe(a.id_of("x"))).data == {"name": "x"}
    with pytest.raises(SourceError, match=r"a.io/n/z is not here"):
        await combined.describe(a.id_of("z"))
    hooks = combined.find_hooks(a.id_of("x"))
    assert hooks is not None
    assert hooks.set_up == ("/make/x",)
    assert combined.find_hooks(a.id_of("z")) is None


async def test_the_file_adds_attributes() -> None:
    """To every device of the source."""
    site = DeviceAttribute(string_value="here")
    combined = CombinedSource(NODE, (part(_Scripted("a.io", "x"), site=site),))
    (pool,) = (await combined.discover(NODE)).pools
    assert [device.attributes for device in pool.devices] == [{"site": site}]
