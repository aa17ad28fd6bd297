"""The addresses of interfaces, as the kernel tells them."""

from __future__ import annotations

import socket
import struct
from ipaddress import ip_address
from pathlib import Path

import pytest

from nodeagent.sources.sysfs.addresses import find_addresses, read_addresses

LOOPBACK = Path("/sys/class/net/lo/address")
MAC = "02:00:00:00:00:05"


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def link(index: int, name: str, mac: str) -> bytes:
    """A message RTM_NEWLINK: ifinfomsg, IFLA_ADDRESS, IFLA_IFNAME."""
    return (
        struct.pack("=BxHiII", 0, 1, index, 0, 0)
        + attribute(1, bytes.fromhex(mac.replace(":", "")))
        + attribute(3, name.encode() + b"\0")
    )


def address(index: int, length: int, text: str, local: str = "") -> bytes:
    """A message RTM_NEWADDR: ifaddrmsg, IFA_ADDRESS, IFA_LOCAL."""
    packed = ip_address(text)
    family = socket.AF_INET if packed.version == 4 else socket.AF_INET6
    return (
        struct.pack("=BBBBI", family, length, 0, 0, index)
        + attribute(1, packed.packed)
        + (attribute(2, ip_address(local).packed) if local else b"")
    )


def test_an_interface_has_the_addresses_of_its_index() -> None:
    """Its own, where the peer's are told too."""
    links = (link(2, "eth1", "02:00:00:00:00:06"), link(3, "eth0", MAC))
    addresses = (
        address(2, 24, "10.0.1.1"),
        address(3, 24, "10.0.0.5"),
        address(3, 32, "10.9.0.1", local="10.9.0.2"),
        address(3, 64, "fe80::1"),
    )
    expected = ("10.0.0.5/24", "10.9.0.2/32", "fe80::1/64")
    assert find_addresses("eth0", MAC.upper(), links, addresses) == expected


@pytest.mark.parametrize(
    ("name", "mac"), [("eth0", "02:00:00:00:00:06"), ("eth1", MAC), ("eth0", "")]
)
def test_an_interface_of_another_namespace_has_none(name: str, mac: str) -> None:
    """The same name is another's there."""
    links = (link(3, "eth0", MAC),)
    assert find_addresses(name, mac, links, (address(3, 24, "10.0.0.5"),)) == ()


def test_a_message_that_ends_early_is_no_endless_loop() -> None:
    cut = link(3, "eth0", MAC)[:16] + bytes(8)
    assert find_addresses("eth0", MAC, (cut,), (address(3, 24, "10.0.0.5"),)) == ()


@pytest.mark.skipif(not LOOPBACK.exists(), reason="no loopback interface is shown")
def test_this_machine_s_kernel_tells_its_loopback_addresses() -> None:
    assert "127.0.0.1/8" in read_addresses("lo", LOOPBACK.read_text().strip())
    assert read_addresses("lo", MAC) == ()
