"""Parses texts of /sys.

Sources: Documentation/ABI of the kernel, files sysfs-bus-pci,
sysfs-bus-pci-devices-aer_stats, stable/sysfs-class-infiniband, sysfs-class-net and
Documentation/gpu/amdgpu/ras.rst. Pure; whatever is not as documented is None or empty.
"""

from __future__ import annotations

import re

_HEX = re.compile(r"0x[0-9a-fA-F]{1,8}", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_SPEED = re.compile(r"([0-9]{1,4})(?:\.([0-9]))?(?:[0-9]*) GT/s", re.ASCII)
_PORT_STATE = re.compile(r"([0-9]): ?([A-Z_]{1,20})", re.ASCII)
_PORT_RATE = re.compile(r"([0-9]{1,5})(?:\.([0-9]))? Gb/sec", re.ASCII)
PORT_ACTIVE = 4
"""IB_PORT_ACTIVE of include/rdma/ib_verbs.h."""
_MAX_INT = 2**63 - 1
MAX_TEXT = 64
"""Characters of an attribute of a device (resource.k8s.io/v1)."""


def parse_hex(text: str) -> int | None:
    """Read a number such as `0x10de`."""
    return int(text, 16) if _HEX.fullmatch(text) else None


def parse_decimal(text: str) -> int | None:
    """Read a number of at most 64 bits."""
    if not _DECIMAL.fullmatch(text):
        return None
    number = int(text)
    return number if -_MAX_INT - 1 <= number <= _MAX_INT else None


def parse_positive(text: str) -> int | None:
    """Read a number above 0: what is unknown is shown as 0 or -1."""
    number = parse_decimal(text)
    return number if number is not None and number > 0 else None


def parse_link_speed(text: str) -> int | None:
    """Read `32.0 GT/s PCIe` as megatransfers a second; `Unknown` is None."""
    match = _SPEED.match(text)
    if match is None:
        return None
    return int(match[1]) * 1000 + int(match[2] or 0) * 100 or None


def parse_port_rate(text: str) -> int | None:
    """Read `400 Gb/sec (4X NDR)` as megabits a second."""
    match = _PORT_RATE.match(text)
    if match is None:
        return None
    return int(match[1]) * 1000 + int(match[2] or 0) * 100 or None


def parse_port_state(text: str) -> tuple[int, str] | None:
    """Read `4: ACTIVE` of a port of RDMA."""
    match = _PORT_STATE.fullmatch(text)
    return (int(match[1]), match[2]) if match else None


def parse_aer_total(text: str, severity: str) -> int | None:
    """Return the total of errors of a severity such as `FATAL`."""
    return _find_number(text, f"TOTAL_ERR_{severity}", " ")


def parse_uncorrectable(text: str) -> int | None:
    """Return the uncorrectable errors of `ue: 0` and `ce: 0` (amdgpu)."""
    return _find_number(text, "ue", ":")


def _find_number(text: str, key: str, separator: str) -> int | None:
    for line in text.splitlines():
        name, _, number = line.partition(separator)
        if name.strip() == key:
            count = parse_decimal(number.strip())
            return count if count is not None and count >= 0 else None
    return None


def clean_text(text: str) -> str:
    """Make an attribute's text of what a device says of itself."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:MAX_TEXT].rstrip()
