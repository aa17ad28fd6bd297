"""What PCI functions show of themselves; what is offered, what is withheld."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeagent.sources.sysfs.folder import TreeError
from nodeagent.sources.sysfs.pci import list_addresses, open_device, read_pci_device
from nodeagent.sources.sysfs.pci_ids import find_names
from nodeagent.sources.sysfs.scan import MAX_DEVICES, Scan, read_names, scan
from nodeagent.sources.sysfs.tree import Tree
from tests.builders.sysfs import lay_out, lay_out_text, make_spec

DISK = "0000:00:02.0"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out("xeon-nvme-connectx3", tmp_path / "sys")


def disk_folder(root: Path) -> Path:
    return root / "class" / "block" / "nvme0n1"


def test_a_disk_with_partitions_is_withheld(root: Path) -> None:
    """It may be what the node runs from."""
    found = scan(Tree(root), make_spec(root, {"kind": "nvme"}), Scan())
    assert found.devices == {}
    assert found.withheld == {DISK: "nvme0n1 has partitions"}


def test_a_disk_with_holders_is_withheld(root: Path) -> None:
    (disk_folder(root) / "nvme0n1p1" / "partition").unlink()
    (disk_folder(root) / "holders" / "dm-0").mkdir(parents=True)
    found = scan(Tree(root), make_spec(root, {"kind": "nvme"}), Scan())
    assert found.withheld == {DISK: "nvme0n1 has holders"}


def test_a_mounted_disk_is_withheld(root: Path) -> None:
    (disk_folder(root) / "nvme0n1p1" / "partition").unlink()
    options = make_spec(root, {"kind": "nvme"})
    Path(options.mountinfo).write_text(
        "36 35 259:0 / /data rw - ext4 /dev/nvme0n1 rw\n"
    )
    assert scan(Tree(root), options, Scan()).withheld == {DISK: "nvme0n1 is mounted"}


def test_where_nobody_says_what_is_mounted_no_disk_is_offered(root: Path) -> None:
    (disk_folder(root) / "nvme0n1p1" / "partition").unlink()
    options = make_spec(root, {"kind": "nvme"}, {"kind": "nic"}, mountinfo="/nowhere")
    found = scan(Tree(root), options, Scan())
    assert found.withheld == {DISK: "whether nvme0n1 is mounted cannot be read"}
    assert len(found.devices) == 2


def test_a_disk_that_was_offered_stays_when_it_comes_into_use(root: Path) -> None:
    """A pod may hold it, and be what uses it; nobody else shall get it."""
    partition = disk_folder(root) / "nvme0n1p1" / "partition"
    partition.unlink()
    options = make_spec(root, {"kind": "nvme"})
    before = scan(Tree(root), options, Scan())
    partition.write_text("1\n")
    after = scan(Tree(root), options, before)
    assert after.devices.keys() == before.devices.keys()
    assert list(after.used.values()) == ["nvme0n1 has partitions"]


def test_one_device_that_cannot_be_read_is_withheld_alone(root: Path) -> None:
    (root / "bus/pci/devices" / "0000:82:00.0" / "vendor").write_text("garbage")
    found = scan(Tree(root), make_spec(root, {"kind": "nic"}), Scan())
    assert list(found.devices) == ["pci-0000-02-00-0"]
    assert list(found.withheld) == ["0000:82:00.0"]


def test_the_speed_of_a_link_that_goes_down_is_kept(root: Path) -> None:
    """Else each flap would announce another device."""
    options = make_spec(root, {"kind": "nic"})
    before = scan(Tree(root), options, Scan())
    net = root / "bus/pci/devices" / "0000:02:00.0" / "net" / "eth0"
    (net / "speed").write_text("-1\n")
    port = root / "bus/pci/devices" / "0000:82:00.0" / "infiniband/mlx4_0/ports/1"
    (port / "state").write_text("1: DOWN\n")
    (port / "rate").write_text("10 Gb/sec (4X SDR)\n")
    assert scan(Tree(root), options, before).devices == before.devices


def test_multipath_disks_are_found_by_the_name_that_is_used(tmp_path: Path) -> None:
    """nvme0c0n1 is one way of many to nvme0n1, which is no child of any controller."""
    lay_out_text(
        "[devices/pci0000:00/0000:00:02.0]\n"
        "vendor = 0x144d\ndevice = 0xa80a\nclass = 0x010802\n"
        "nvme/nvme0/state = live\nnvme/nvme0/nvme0c0n1/size = 0\n"
        "[devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1]\n"
        "size = 8\ndev = 259:0\n"
        "[class/block]\n"
        "nvme0n1 -> ../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1\n"
        "[bus/pci/devices]\n0000:00:02.0 -> ../../../devices/pci0000:00/0000:00:02.0\n",
        tmp_path / "sys",
    )
    options = make_spec(tmp_path / "sys", {"kind": "nvme"})
    (device,) = scan(Tree(tmp_path / "sys"), options, Scan()).devices.values()
    assert [(disk.name, disk.size_bytes) for disk in device.functions.disks] == [
        ("nvme0n1", 4096)
    ]


def test_more_devices_than_a_pool_holds_are_withheld(tmp_path: Path) -> None:
    lines = ["[bus/pci/devices]"]
    for index in range(MAX_DEVICES + 1):
        address = f"0000:{index // 32:02x}:{index % 32:02x}.0"
        path = f"devices/pci0000:00/{address}"
        lines.insert(0, f"[{path}]\nvendor = 0x1\ndevice = 0x1\nclass = 0x020000")
        lines.append(f"{address} -> ../../../{path}")
    lay_out_text("\n".join(lines), tmp_path / "sys")
    found = scan(
        Tree(tmp_path / "sys"), make_spec(tmp_path / "sys", {"kind": "nic"}), Scan()
    )
    assert len(found.devices) == MAX_DEVICES
    assert len(found.withheld) == 1


def test_without_a_pci_bus_nothing_can_be_said(tmp_path: Path) -> None:
    with pytest.raises(TreeError):
        scan(Tree(tmp_path), make_spec(tmp_path, {}), Scan())


def test_names_come_from_the_first_file_that_is_there(root: Path) -> None:
    ids = root.parent / "pci.ids"
    ids.write_text("8086  Intel Corporation\n")
    options = make_spec(
        root, {"kind": "nvme"}, pciIds=["/nowhere", str(ids)], offerUsedDisks=True
    )
    (device,) = scan(Tree(root), options, Scan()).devices.values()
    assert read_names(options, [device.pci]) == {(0x8086, None): "Intel Corporation"}


def test_a_device_behind_a_switch_has_the_root_above_it(tmp_path: Path) -> None:
    """The first part of its real path, as upstream's deviceattribute has it."""
    tree = Tree(lay_out("hgx-h100", tmp_path))
    device = read_pci_device(open_device(tree, "0000:a4:00.0"))
    assert (device.bus_id, device.root) == ("0000:a4:00.0", "pci0000:a0")
    assert (device.vendor, device.device, device.class_code) == (
        0x10DE,
        0x2330,
        0x030200,
    )
    assert (device.kernel_driver, device.numa_node) == ("nvidia", 0)
    assert device.max_link_speed == 32000


def test_no_numa_node_is_none(tmp_path: Path) -> None:
    """The kernel shows -1."""
    tree = Tree(lay_out("xeon-nvme-connectx3", tmp_path))
    assert read_pci_device(open_device(tree, "0000:00:02.0")).numa_node is None


def test_a_domain_of_five_digits_has_no_standard_attributes(tmp_path: Path) -> None:
    """Upstream's rule takes four; the device itself is there all the same."""
    tree = Tree(lay_out("domain-32-bits", tmp_path))
    assert list_addresses(tree) == ("0000:00:03.0", "10000:00:04.0")
    device = read_pci_device(open_device(tree, "10000:00:04.0"))
    assert (device.bus_id, device.root) == ("", "")
    assert device.kernel_driver == "virtio-pci"


def test_a_device_that_does_not_say_what_it_is(tmp_path: Path) -> None:
    """The error names the file."""
    lay_out_text(
        "[devices/pci0000:00/0000:00:02.0]\nvendor = 0x8086\ndevice = garbage\n"
        "[bus/pci/devices]\n0000:00:02.0 -> ../../../devices/pci0000:00/0000:00:02.0\n",
        tmp_path,
    )
    folder = open_device(Tree(tmp_path), "0000:00:02.0")
    with pytest.raises(TreeError, match=r"0000:00:02.0/device: is not a hexadecimal"):
        read_pci_device(folder)


def test_a_link_to_something_else_is_no_device(tmp_path: Path) -> None:
    """Neither to a device of another address, nor to what is no device."""
    lay_out_text(
        "[devices/pci0000:00/0000:00:02.0]\nvendor = 0x8086\n[kernel]\nx = 1\n"
        "[bus/pci/devices]\n0000:00:03.0 -> ../../../devices/pci0000:00/0000:00:02.0\n"
        "0000:00:04.0 -> ../../../kernel\n",
        tmp_path,
    )
    for address in ("0000:00:03.0", "0000:00:04.0"):
        with pytest.raises(TreeError, match="does not lead to a device"):
            open_device(Tree(tmp_path), address)


LINES = """\
# comment
10de  NVIDIA Corporation
\t2330  GH100 [H100 SXM5 80GB]
\t\t10de 16c1  a subsystem
\t2331  GH100 [H100 PCIe]
15b3  Mellanox Technologies
\t2330  not NVIDIA's
C 10  Encryption controller
\t2330  a class
""".splitlines(keepends=True)


def test_only_what_is_asked_for_is_kept() -> None:
    """A name counts for the vendor above it; classes and subsystems are others."""
    assert find_names(LINES, {(0x10DE, 0x2330), (0x8086, 0x1)}) == {
        (0x10DE, None): "NVIDIA Corporation",
        (0x10DE, 0x2330): "GH100 [H100 SXM5 80GB]",
    }
