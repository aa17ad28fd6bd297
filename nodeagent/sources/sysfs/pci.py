"""A PCI device, read from its folder in /sys.

Standard attributes are made by the rules of k8s.io/dynamic-resource-allocation/
deviceattribute: `pciBusID` is domain:bus:device.function with four digits of domain,
`pcieRoot` the first part of the device's real path below /sys/devices. A device that
does not follow them (a domain of more digits, as VMD makes them) has neither.
"""

from __future__ import annotations

import re

from msgspec import Struct

from nodeagent.sources.sysfs import parse
from nodeagent.sources.sysfs.folder import FileTree, ReadableFolder, TreeError

DEVICES = "bus/pci/devices"
_ADDRESS = re.compile(
    r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", re.ASCII | re.IGNORECASE
)
_STANDARD_ADDRESS = re.compile(
    r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", re.ASCII
)
_ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}", re.ASCII)
_DRIVER = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)
_MAX_NUMA_NODE = 2**16


class PciDevice(Struct, frozen=True, kw_only=True):
    """A PCI function; what is not shown is None or empty."""

    address: str
    vendor: int
    device: int
    class_code: int
    """Base class, subclass and interface, in 24 bits."""
    kernel_driver: str = ""
    numa_node: int | None = None
    bus_id: str = ""
    """The standard attribute `pciBusID`."""
    root: str = ""
    """The standard attribute `pcieRoot`."""
    max_link_speed: int | None = None
    """In megatransfers a second. That of now goes down whenever the device idles."""
    link_width: int | None = None
    """Lanes in use now."""
    iommu_group: int | None = None
    is_virtual_function: bool = False


def list_addresses(tree: FileTree) -> tuple[str, ...]:
    """List the addresses of all PCI functions.

    Raises:
        TreeError: there is no PCI bus.
    """
    names = tree.folder(DEVICES).names()
    return tuple(name for name in names if _ADDRESS.fullmatch(name))


def open_device(tree: FileTree, address: str) -> ReadableFolder:
    """Return the folder of a PCI function.

    Raises:
        TreeError: it is not there, or not below /sys/devices.
    """
    path = f"{DEVICES}/{address}"
    folder = tree.folder(path)
    if folder.parts[:1] != ("devices",) or folder.name != address:
        raise TreeError(path, "does not lead to a device of this address")
    return folder


def read_pci_device(folder: ReadableFolder) -> PciDevice:
    """Read what every PCI function shows.

    Raises:
        TreeError: it does not say what it is.
    """
    standard = _STANDARD_ADDRESS.fullmatch(folder.name) is not None
    root = folder.parts[1]
    return PciDevice(
        address=folder.name,
        vendor=_read_id(folder, "vendor"),
        device=_read_id(folder, "device"),
        class_code=_read_id(folder, "class"),
        kernel_driver=_read_driver(folder),
        numa_node=_read_numa_node(folder),
        bus_id=folder.name if standard else "",
        root=root if standard and _ROOT.fullmatch(root) else "",
        max_link_speed=parse.parse_link_speed(folder.find("max_link_speed")),
        link_width=parse.parse_positive(folder.find("current_link_width")),
        iommu_group=parse.parse_decimal(folder.link("iommu_group")),
        is_virtual_function=folder.has("physfn"),
    )


def _read_id(folder: ReadableFolder, name: str) -> int:
    number = parse.parse_hex(folder.read(name))
    if number is None:
        raise TreeError(
            f"{DEVICES}/{folder.name}/{name}", "is not a hexadecimal number"
        )
    return number


def _read_driver(folder: ReadableFolder) -> str:
    driver = folder.link("driver")
    return driver if _DRIVER.fullmatch(driver) else ""


def _read_numa_node(folder: ReadableFolder) -> int | None:
    """Return the NUMA node; the kernel shows -1 where it knows none."""
    node = parse.parse_decimal(folder.find("numa_node"))
    return node if node is not None and 0 <= node < _MAX_NUMA_NODE else None
