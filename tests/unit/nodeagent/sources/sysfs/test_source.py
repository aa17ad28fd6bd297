"""The source `sysfs` over captured trees that change, and over this machine's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from nodeagent.cdi import find_violations
from nodeagent.errors import SourceError
from nodeagent.health import Reading, Symptom
from nodeagent.sources.source import NetworkDescription
from nodeagent.sources.sysfs.hotplug import HotPlug
from nodeagent.sources.sysfs.source import SysfsSource, open_sysfs
from nodeagent.sources.sysfs.tree import Tree
from tests.builders.sysfs import DRIVER, lay_out, make_spec

NODE = NodeName("n1")
NIC = "0000:82:00.0"
LIVE = Path("/sys/bus/pci/devices")
ADDRESSES = {path.name for path in LIVE.glob("*")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out("xeon-nvme-connectx3", tmp_path / "sys")


def opened(root: Path, *select: dict[str, Any], **others: Any) -> SysfsSource:
    spec = make_spec(root, *select, **others)
    return SysfsSource(spec, NODE, Tree(root), HotPlug(None))


def device_id(address: str) -> DeviceID:
    name = "pci-" + address.replace(":", "-").replace(".", "-")
    return DeviceID(DriverName(DRIVER), PoolName(NODE), DeviceName(name))


def told(readings: Iterable[Reading]) -> list[tuple[DeviceID, Symptom, str]]:
    return [(found.device, found.symptom, found.reason) for found in readings]


async def test_devices_are_those_of_the_node_s_pool(root: Path) -> None:
    source = opened(root, {"kind": "nic"})
    devices = await source.discover(NODE)
    assert devices.device_ids == (device_id("0000:02:00.0"), device_id(NIC))
    assert (source.nodes, source.drivers) == ((NODE,), (DRIVER,))


async def test_another_node_is_not_here(root: Path) -> None:
    with pytest.raises(SourceError, match="no node is named 'n2'"):
        await opened(root, {}).discover(NodeName("n2"))


async def test_a_link_that_goes_down_is_bad_while_it_is_down(root: Path) -> None:
    """With every reading: the port of RDMA and its interface say so at once."""
    source = opened(root, {"kind": "nic"})
    assert (await source.read(0.0)).symptoms == {}
    folder = root / "bus/pci/devices" / NIC
    state = folder / "infiniband/mlx4_0/ports/1/state"
    state.write_text("1: DOWN\n")
    (folder / "net/ib0/operstate").write_text("down\n")
    readings = (await source.read(0.25)).symptoms[NODE]
    assert told(readings) == [(device_id(NIC), Symptom.BAD, "LinkDown")] * 2
    assert [reading.message for reading in readings] == [
        "ib0 is down",
        "mlx4_0 port 1 is DOWN",
    ]
    state.write_text("4: ACTIVE\n")
    (folder / "net/ib0/operstate").write_text("up\n")
    assert (await source.read(0.5)).symptoms == {}


async def test_uncorrectable_errors_that_rise_are_bad_for_a_while(root: Path) -> None:
    folder = root / "bus/pci/devices" / NIC
    (folder / "aer_dev_fatal").write_text("TOTAL_ERR_FATAL 3\n")
    source = opened(root, {"kind": "nic"}, countersSeconds=2.0, holdSeconds=60.0)
    assert (await source.read(0.0)).symptoms == {}
    (folder / "aer_dev_fatal").write_text("TOTAL_ERR_FATAL 4\n")
    assert (await source.read(1.0)).symptoms == {}, "counters are read now and then"
    readings = (await source.read(2.0)).symptoms[NODE]
    assert told(readings) == [(device_id(NIC), Symptom.BAD, "AerFatal")]
    assert NODE in (await source.read(61.0)).symptoms
    assert (await source.read(63.0)).symptoms == {}


async def test_a_device_that_goes_or_comes_changes_the_node(root: Path) -> None:
    """Without any event: the list is looked at with every reading."""
    source = opened(root, {"kind": "nic"})
    await source.read(0.0)
    link = root / "bus/pci/devices" / NIC
    target = link.readlink()
    link.unlink()
    assert (await source.read(0.25)).changed == {NODE}
    assert (await source.discover(NODE)).device_ids == (device_id("0000:02:00.0"),)
    assert (await source.read(0.5)).changed == set()
    link.symlink_to(target)
    assert (await source.read(0.75)).changed == {NODE}


async def test_what_changes_inside_is_seen_when_all_is_looked_at(root: Path) -> None:
    source = opened(root, {"kind": "nic"}, rescanSeconds=30.0)
    await source.read(0.0)
    (root / "bus/pci/devices" / NIC / "infiniband/mlx4_0/fw_ver").write_text("2.42\n")
    assert (await source.read(29.0)).changed == set()
    assert (await source.read(30.0)).changed == {NODE}


async def test_an_interface_that_vanishes_is_silent_then_looked_for(root: Path) -> None:
    """Silent once: it may have been renamed, or moved to a container."""
    source = opened(root, {"kind": "nic"})
    await source.read(0.0)
    shutil.rmtree(root / "bus/pci/devices" / NIC / "net")
    readings = (await source.read(0.25)).symptoms[NODE]
    assert told(readings) == [(device_id(NIC), Symptom.SILENT, "Unreadable")]
    after = await source.read(1.25)
    assert after.changed == {NODE}
    assert after.symptoms == {}


async def test_a_disk_that_comes_into_use_is_bad(root: Path) -> None:
    """Nobody else shall get it; it is not taken from the pod that may hold it."""
    partition = root / "class/block/nvme0n1/nvme0n1p1/partition"
    partition.unlink()
    source = opened(root, {"kind": "nvme"}, rescanSeconds=1.0)
    await source.read(0.0)
    partition.write_text("1\n")
    readings = (await source.read(1.0)).symptoms[NODE]
    assert told(readings) == [(device_id("0000:00:02.0"), Symptom.BAD, "InUse")]
    assert len((await source.discover(NODE)).device_ids) == 1


async def test_a_disk_that_is_in_use_now_is_given_to_no_container(root: Path) -> None:
    """It is asked again at that moment, not remembered."""
    partition = root / "class/block/nvme0n1/nvme0n1p1/partition"
    partition.unlink()
    source = opened(root, {"kind": "nvme"})
    await source.read(0.0)
    disk = device_id("0000:00:02.0")
    edits = await source.edits(disk)
    assert [node.path for node in edits.device_nodes] == ["/dev/nvme0n1"]
    partition.write_text("1\n")
    with pytest.raises(SourceError, match="nvme0n1 has partitions"):
        await source.edits(disk)


async def test_what_is_not_here_is_given_to_no_container(root: Path) -> None:
    source = opened(root, {"kind": "nic"})
    for device in (
        device_id("0000:00:02.0"),
        DeviceID(DriverName("other"), PoolName(NODE), device_id(NIC).device),
    ):
        with pytest.raises(SourceError, match="is not here"):
            await source.edits(device)
    await source.discover(NODE)
    (root / "bus/pci/devices" / NIC).unlink()
    with pytest.raises(SourceError):
        await source.edits(device_id(NIC))


async def test_without_a_tree_every_device_is_silent(root: Path) -> None:
    source = opened(root, {"kind": "nic"})
    await source.read(0.0)
    shutil.rmtree(root / "bus")
    with pytest.raises(SourceError, match="bus/pci/devices"):
        await source.read(0.25)


@pytest.mark.skipif(not ADDRESSES, reason="this machine shows no PCI devices")
async def test_this_machine_s_own_devices() -> None:
    """Whatever is here: names and nodes that break no rule, and no disk in use."""
    everything = make_spec(Path("/sys"), {}, mountinfo="/proc/self/mountinfo")
    async with open_sysfs(everything, NODE) as source:
        await check_live(source)


async def check_live(source: SysfsSource) -> None:
    readings = await source.read(0.0)
    devices = await source.discover(NODE)
    for device in devices.pools[0].devices:
        bus_id = device.attributes["resource.kubernetes.io/pciBusID"].string_value
        assert bus_id in ADDRESSES
    for found in devices.device_ids:
        with suppress(SourceError):  # a GPU of NVIDIA's driver
            assert list(find_violations(await source.edits(found))) == []
    named = {reading.device for reading in readings.symptoms.get(NODE, ())}
    assert named <= set(devices.device_ids)


async def test_a_claim_s_status_gets_place_driver_and_interface(root: Path) -> None:
    """Without addresses: no interface of this machine is the captured one."""
    source = opened(root, {"kind": "nic"})
    await source.discover(NODE)
    ib = await source.describe(device_id(NIC))
    assert ib.data == {
        "pciAddress": NIC,
        "kernelDriver": "mlx4_core",
        "numaNode": 1,
        "interfaces": ("ib0",),
        "rdmaDevices": ("mlx4_0",),
    }
    assert ib.network == NetworkDescription(
        interface="ib0",
        hardware_address="80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:f9:bf:a1",
    )
    disk = opened(root, {"kind": "nvme"}, offerUsedDisks=True)
    (found, *_) = (await disk.discover(NODE)).device_ids
    assert (await disk.describe(found)).network is None
    with pytest.raises(SourceError, match="is not here"):
        await source.describe(device_id("0000:99:00.0"))
