"""The addresses of a network interface, asked of the kernel by rtnetlink.

/sys does not show them, and of IPv4 no file does; an ioctl tells one of them only.
An interface is known by name and hardware address: /sys may be the host's while this
process is in a network namespace of its own, where the same name is another's.

Source: rtnetlink(7), netlink(7).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from ipaddress import ip_address

_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_LINK = struct.Struct("=BxHiII")  # ifinfomsg
_ADDRESS = struct.Struct("=BBBBI")  # ifaddrmsg
_ATTRIBUTE = struct.Struct("=HH")  # rtattr
_ERROR, _DONE = 2, 3
_GET_LINK, _GET_ADDRESS = 18, 22
_REQUEST_DUMP = 0x301
_IFLA_ADDRESS, _IFLA_IFNAME = 1, 3
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_KERNEL = 0
_BUFFER = 1 << 16
"""More than the kernel puts into one datagram of a dump (32 KiB)."""
_LIMIT_S = 1.0


def read_addresses(name: str, mac: str) -> tuple[str, ...]:
    """List the addresses of an interface with their prefixes, such as `10.0.0.5/24`.

    Empty: it has none, or is not in the network namespace of this process.
    """
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    try:
        with socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE) as kernel:
            kernel.settimeout(_LIMIT_S)
            links = tuple(_dump_messages(kernel, _GET_LINK, _LINK.size))
            addresses = tuple(_dump_messages(kernel, _GET_ADDRESS, _ADDRESS.size))
    except OSError:
        return ()
    return find_addresses(name, mac, links, addresses)


def find_addresses(
    name: str, mac: str, links: Iterable[bytes], addresses: Iterable[bytes]
) -> tuple[str, ...]:
    """Find an interface's addresses in what the kernel tells of all.

    `links` are messages RTM_NEWLINK, `addresses` RTM_NEWADDR, without their headers.
    """
    wanted = (name.encode(), mac.lower())
    indexes = {
        _LINK.unpack_from(link)[2]
        for link in links
        if _identify_address(dict(_split_attributes(link[_LINK.size :]))) == wanted
    }
    found: list[str] = []
    for message in addresses:
        family, length, _, _, index = _ADDRESS.unpack_from(message)
        if index in indexes and family in _FAMILIES:
            told = dict(_split_attributes(message[_ADDRESS.size :]))
            # Of a point-to-point link the other is the peer's.
            address = told.get(_IFA_LOCAL) or told.get(_IFA_ADDRESS)
            if address is not None:
                found.append(f"{ip_address(address)}/{length}")
    return tuple(found)


def _identify_address(attributes: dict[int, bytes]) -> tuple[bytes, str]:
    name = attributes.get(_IFLA_IFNAME, b"").rstrip(b"\0")
    return name, attributes.get(_IFLA_ADDRESS, b"").hex(":")


def _dump_messages(kernel: socket.socket, what: int, size: int) -> Iterator[bytes]:
    """Ask for all of a kind; yields what follows the header of each message.

    Raises:
        OSError: the kernel does not tell.
    """
    length = _HEADER.size + size
    kernel.send(_HEADER.pack(length, what, _REQUEST_DUMP, what, 0) + bytes(size))
    while True:
        data, (sender, _) = kernel.recvfrom(_BUFFER)
        if sender != _KERNEL:
            continue
        while len(data) >= _HEADER.size:
            length, kind, *_ = _HEADER.unpack_from(data)
            if kind == _DONE:
                return
            if kind == _ERROR or length < _HEADER.size:
                raise OSError("rtnetlink refused")
            yield data[_HEADER.size : length]
            data = data[_align_length(length) :]


def _split_attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if length < _ATTRIBUTE.size:
            return
        yield kind, data[_ATTRIBUTE.size : length]
        data = data[_align_length(length) :]


def _align_length(length: int) -> int:
    return (length + 3) & ~3
