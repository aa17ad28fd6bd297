"""The network interface of a PCI device and its addresses, wherever it is now.

/sys may be the host's while this process is in a network namespace of its own, and an
interface that a pod was given is in that pod's: /sys shows it no more, and it may have
another name. So it is looked for in this process's namespace and, with CAP_NET_ADMIN,
in those at the other ends of its links: that of the node, and from there those of pods
(each pod of a usual network has a link whose other end is the node's).

Source: rtnetlink(7); linux/if_link.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from msgspec import Struct

from nodeagent.sources.source import NetworkDescription
from nodeagent.sources.sysfs.functions import Interface
from nodeagent.sources.sysfs.rtnetlink import align, dump_addresses, dump_links

MAX_NAMESPACES = 1024
"""More than a node has pods."""
_LINK = struct.Struct("=BxHiII")  # ifinfomsg
_ADDRESS = struct.Struct("=BBBBI")  # ifaddrmsg
_ATTRIBUTE = struct.Struct("=HH")  # rtattr
_NUMBER = struct.Struct("=i")
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_LINK_NETNSID = 1, 3, 37
_IFLA_PARENT_NAME, _IFLA_PARENT_BUS = 56, 57
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class Link(Struct, frozen=True, kw_only=True):
    """A network interface, as the kernel tells of it."""

    index: int
    name: str
    mac: str = ""
    parent: tuple[str, str] = ("", "")
    """Bus and name of the device that it is of, such as `pci`, `0000:3b:00.0`; empty:
    it is of none, or the kernel is older than 5.14."""
    other_end: int | None = None
    """The namespace of its other end, by its number here; None: this one, or none."""


def find_network(address: str, known: Interface | None) -> NetworkDescription | None:
    """Find the interface of a PCI device; None: none is in sight.

    `known` is its first interface as /sys shows it, or showed it last; where no
    namespace in sight has it, that is the answer, without addresses.
    """
    for namespace, links in _walk_namespaces():
        link = pick_link(links, address, known)
        if link is None:
            continue
        try:
            addresses = read_addresses(link.index, dump_addresses(namespace))
        except OSError:
            addresses = ()
        return NetworkDescription(
            interface=link.name, hardware_address=link.mac, addresses=addresses
        )
    if known is None:
        return None
    return NetworkDescription(interface=known.name, hardware_address=known.mac)


def _walk_namespaces() -> Iterator[tuple[int | None, tuple[Link, ...]]]:
    """Go from our namespace to those at the other ends of links, each once."""
    seen: dict[int | None, None] = {None: None}
    waiting: list[int | None] = [None]
    while waiting:
        namespace = waiting.pop(0)
        try:
            links = tuple(map(read_link, dump_links(namespace)))
        except (OSError, struct.error):
            continue  # not ours to see, or gone
        yield namespace, links
        for link in links:
            if link.other_end not in seen and len(seen) < MAX_NAMESPACES:
                seen[link.other_end] = None
                waiting.append(link.other_end)


def pick_link(
    links: Iterable[Link], address: str, known: Interface | None
) -> Link | None:
    """Pick the interface of a PCI device; of several, the one that is known."""
    wanted = ("", "") if known is None else (known.name, known.mac.lower())
    found = [link for link in links if _is_of_device(link, address, wanted)]
    return min(
        found,
        key=lambda link: (link.name != wanted[0], link.mac != wanted[1], link.index),
        default=None,
    )


def _is_of_device(link: Link, address: str, wanted: tuple[str, str]) -> bool:
    """True if a link is a device's: by its address, or by name and hardware address.

    Several links may have one hardware address: ports of a bond, what is stacked on
    them, and those of other namespaces that have this name.
    """
    bus, name = link.parent
    if bus == "pci":
        return name == address
    return link.mac == wanted[1] != "" and (link.name == wanted[0] or bus != "")


def read_link(message: bytes) -> Link:
    """Read a message RTM_NEWLINK, without its header.

    Raises:
        struct.error: it ends early.
    """
    told = dict(_split_attributes(message[_LINK.size :]))
    other_end = told.get(_IFLA_LINK_NETNSID)
    return Link(
        index=_LINK.unpack_from(message)[2],
        name=_text(told, _IFLA_IFNAME),
        mac=told.get(_IFLA_ADDRESS, b"").hex(":"),
        parent=(_text(told, _IFLA_PARENT_BUS), _text(told, _IFLA_PARENT_NAME)),
        other_end=None if other_end is None else _NUMBER.unpack_from(other_end)[0],
    )


def read_addresses(index: int, messages: Iterable[bytes]) -> tuple[str, ...]:
    """List the addresses of an interface with their prefixes, such as `10.0.0.5/24`.

    `messages` are RTM_NEWADDR, without their headers.
    """
    found: list[str] = []
    for message in messages:
        family, length, _, _, theirs = _ADDRESS.unpack_from(message)
        if theirs == index and family in _FAMILIES:
            told = dict(_split_attributes(message[_ADDRESS.size :]))
            # Of a point-to-point link the other is the peer's.
            address = told.get(_IFA_LOCAL) or told.get(_IFA_ADDRESS)
            if address is not None:
                found.append(f"{ip_address(address)}/{length}")
    return tuple(found)


def _text(told: dict[int, bytes], kind: int) -> str:
    return told.get(kind, b"").rstrip(b"\0").decode(errors="replace")


def _split_attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if length < _ATTRIBUTE.size:
            return
        yield kind, data[_ATTRIBUTE.size : length]
        data = data[align(length) :]
