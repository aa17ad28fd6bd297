"""Asks the kernel for all network interfaces and addresses of a network namespace.

/sys does not show addresses, and of IPv4 no file does; an ioctl tells one of them only.
Another namespace than this process's own is read by the number that it has there, which
takes CAP_NET_ADMIN over it and no other privilege.

Source: rtnetlink(7), netlink(7).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_LINK = struct.Struct("=BxHiII")  # ifinfomsg
_ADDRESS = struct.Struct("=BBBBI")  # ifaddrmsg
_ATTRIBUTE = struct.Struct("=HHi")  # rtattr with a number
_ERROR, _DONE = 2, 3
_GET_LINK, _GET_ADDRESS = 18, 22
_REQUEST_DUMP = 0x301
_LINK_NAMESPACE, _ADDRESS_NAMESPACE = 46, 10  # IFLA_, IFA_TARGET_NETNSID
_NETLINK_OPTIONS, _STRICT = 270, 12
"""Without NETLINK_GET_STRICT_CHK the kernel tells addresses of our namespace alone."""
_KERNEL = 0
_BUFFER = 1 << 16
"""More than the kernel puts into one datagram of a dump (32 KiB)."""
_LIMIT_S = 1.0


def dump_links(namespace: int | None) -> tuple[bytes, ...]:
    """List the messages RTM_NEWLINK of a namespace, without their headers.

    `namespace` is its number here; None: our own.

    Raises:
        OSError: the kernel does not tell.
    """
    return _dump(_GET_LINK, _LINK.size, _LINK_NAMESPACE, namespace)


def dump_addresses(namespace: int | None) -> tuple[bytes, ...]:
    """List the messages RTM_NEWADDR of a namespace, without their headers.

    `namespace` is its number here; None: our own.

    Raises:
        OSError: the kernel does not tell.
    """
    return _dump(_GET_ADDRESS, _ADDRESS.size, _ADDRESS_NAMESPACE, namespace)


def _dump(
    what: int, size: int, selector: int, namespace: int | None
) -> tuple[bytes, ...]:
    body = bytes(size)
    if namespace is not None:
        body += _ATTRIBUTE.pack(_ATTRIBUTE.size, selector, namespace)
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(_LIMIT_S)
        if namespace is not None:
            kernel.setsockopt(_NETLINK_OPTIONS, _STRICT, 1)
        length = _HEADER.size + len(body)
        kernel.send(_HEADER.pack(length, what, _REQUEST_DUMP, what, 0) + body)
        return tuple(_read_messages(kernel))


def _read_messages(kernel: socket.socket) -> Iterator[bytes]:
    """Yield what follows the header of each message of a dump.

    Raises:
        OSError: the kernel does not tell.
    """
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
            data = data[align(length) :]


def align(length: int) -> int:
    """Return where the next message or attribute begins."""
    return (length + 3) & ~3
