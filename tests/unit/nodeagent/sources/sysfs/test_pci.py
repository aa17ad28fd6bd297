"""What a PCI function shows of itself, and the standard attributes' rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeagent.sources.sysfs.folder import TreeError
from nodeagent.sources.sysfs.pci import list_addresses, open_device, read_pci_device
from nodeagent.sources.sysfs.tree import Tree
from tests.builders.sysfs import lay_out, lay_out_text


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
    with pytest.raises(TreeError, match=r"0000:00:02.0/device: is no hexadecimal"):
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
        with pytest.raises(TreeError, match="leads to no device"):
            open_device(Tree(tmp_path), address)
