"""The interface of a PCI device and its addresses, as the kernel tells them."""

from __future__ import annotations

import socket
import struct
from ipaddress import ip_address
from pathlib import Path

import pytest

from nodeagent.sources.sysfs.addresses import (
    Link,
    find_network,
    pick_link,
    read_addresses,
    read_link,
)
from nodeagent.sources.sysfs.functions import Interface

LOOPBACK = Path("/sys/class/net/lo/address")
MAC, OTHER_MAC = "02:00:00:00:00:05", "02:00:00:00:00:06"
PCI = "0000:3b:00.0"
KNOWN = Interface(name="eth0", path="", mac=MAC)


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def address(index: int, length: int, text: str, local: str = "") -> bytes:
    """A message RTM_NEWADDR: ifaddrmsg, IFA_ADDRESS, IFA_LOCAL."""
    packed = ip_address(text)
    family = socket.AF_INET if packed.version == 4 else socket.AF_INET6
    return (
        struct.pack("=BBBBI", family, length, 0, 0, index)
        + attribute(1, packed.packed)
        + (attribute(2, ip_address(local).packed) if local else b"")
    )


def test_a_link_is_read_with_its_device_and_its_other_end() -> None:
    """IFLA_ADDRESS, IFLA_IFNAME, IFLA_LINK_NETNSID, IFLA_PARENT_DEV_*."""
    head = struct.pack("=BxHiII", 0, 1, 3, 0, 0)
    hardware = bytes.fromhex(MAC.replace(":", ""))
    named = head + attribute(1, hardware) + attribute(3, b"eth0\0")
    whole = named + attribute(37, struct.pack("=i", 7))
    whole += attribute(56, PCI.encode() + b"\0") + attribute(57, b"pci\0")
    link = Link(index=3, name="eth0", mac=MAC)
    assert read_link(named) == link
    assert read_link(whole) == Link(
        index=3, name="eth0", mac=MAC, parent=("pci", PCI), other_end=7
    )
    assert read_link(head + bytes(8)) == Link(index=3, name="")


def test_an_interface_has_the_addresses_of_its_index() -> None:
    """Its own, where the peer's are told too."""
    addresses = (
        address(2, 24, "10.0.1.1"),
        address(3, 24, "10.0.0.5"),
        address(3, 32, "10.9.0.1", local="10.9.0.2"),
        address(3, 64, "fe80::1"),
    )
    assert read_addresses(3, addresses) == (
        "10.0.0.5/24",
        "10.9.0.2/32",
        "fe80::1/64",
    )


@pytest.mark.parametrize(
    ("name", "mac", "parent"),
    [
        pytest.param("net1", OTHER_MAC, ("pci", PCI), id="renamed in a pod"),
        pytest.param("eth0", MAC, ("", ""), id="kernel that tells no parent"),
        pytest.param("net1", MAC, ("virtio", "virtio2"), id="virtio in a pod"),
    ],
)
def test_a_device_s_interface_is_known_by_what_stays(
    name: str, mac: str, parent: tuple[str, str]
) -> None:
    link = Link(index=3, name=name, mac=mac, parent=parent)
    assert pick_link([link], PCI, KNOWN) == link


@pytest.mark.parametrize(
    ("name", "mac", "parent"),
    [
        pytest.param("eth0", OTHER_MAC, ("", ""), id="name of another namespace"),
        pytest.param("eth0.5", MAC, ("", ""), id="stacked on it"),
        pytest.param("eth0", MAC, ("pci", "0000:3b:00.1"), id="port of its bond"),
        pytest.param("eth0", OTHER_MAC, ("virtio", "virtio2"), id="another device"),
    ],
)
def test_another_interface_is_not_taken_for_it(
    name: str, mac: str, parent: tuple[str, str]
) -> None:
    link = Link(index=3, name=name, mac=mac, parent=parent)
    assert pick_link([link], PCI, KNOWN) is None
    nameless = Interface(name="eth0", path="", mac="")
    assert pick_link([Link(index=3, name="eth0")], PCI, nameless) is None


def test_of_several_interfaces_of_a_device_the_known_one_is_taken() -> None:
    """A representor is of the same device."""
    links = [
        Link(index=number, name=name, mac=mac, parent=("pci", PCI))
        for number, name, mac in ((3, "eth0_r", OTHER_MAC), (4, "eth0", MAC))
    ]
    assert pick_link(links, PCI, KNOWN) == links[1]
    assert pick_link(links, PCI, None) == links[0]


@pytest.mark.skipif(not LOOPBACK.exists(), reason="no loopback interface is shown")
def test_this_machine_s_kernel_tells_its_loopback_addresses() -> None:
    loopback = Interface(name="lo", path="", mac=LOOPBACK.read_text().strip())
    found = find_network(PCI, loopback)
    assert found is not None
    assert "127.0.0.1/8" in found.addresses
    absent = find_network(PCI, KNOWN)
    assert absent is not None
    assert (absent.interface, absent.addresses) == ("eth0", ())
    assert find_network(PCI, None) is None
