"""Functions of a PCI device: interfaces, RDMA ports, disks and device nodes.

Folders are taken by the names that the kernel gives them below the device's own, and
below those of its virtio device where it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, structs

from nodeagent.sources.sysfs import parse
from nodeagent.sources.sysfs.folder import FileTree, ReadableFolder, TreeError

_SECTOR_BYTES = 512
"""The unit of `size`, whatever the disk's own sectors are."""
_VIRTIO = re.compile(r"virtio[0-9]{1,6}", re.ASCII)
_NAMESPACE = re.compile(r"nvme([0-9]{1,6})(?:c[0-9]{1,6})?n([0-9]{1,6})", re.ASCII)
_DISK = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)
_NODES = (
    ("infiniband_verbs", re.compile(r"uverbs[0-9]{1,6}", re.ASCII), "infiniband"),
    ("accel", re.compile(r"accel[0-9]{1,6}", re.ASCII), "accel"),
    ("drm", re.compile(r"renderD[0-9]{1,6}", re.ASCII), "dri"),
)
"""Subsystem, name of the device in it, and where below /dev its node is."""
_PORT = re.compile(r"[0-9]{1,3}", re.ASCII)


class Interface(Struct, frozen=True, kw_only=True):
    """A network interface."""

    name: str
    path: str
    """Its folder, below the root."""
    mac: str = ""
    speed_mbps: int | None = None
    """None while the link is down, and where the driver does not know."""


class RdmaPort(Struct, frozen=True, kw_only=True):
    """A port of an RDMA device."""

    path: str
    number: int
    link_layer: str = ""
    rate_mbps: int | None = None
    """None while the port is not active: the kernel shows the slowest rate then."""


class RdmaDevice(Struct, frozen=True, kw_only=True):
    """An RDMA device, such as mlx5_0."""

    name: str
    node_guid: str = ""
    firmware: str = ""
    ports: tuple[RdmaPort, ...] = ()


class Disk(Struct, frozen=True, kw_only=True):
    """A whole disk, or an NVMe namespace."""

    name: str
    number: str = ""
    """`major:minor`."""
    size_bytes: int | None = None
    is_divided: bool = False
    """It has partitions."""
    is_held: bool = False
    """Something is built on it: LVM, RAID, encryption."""


class Controller(Struct, frozen=True, kw_only=True):
    """An NVMe controller."""

    name: str
    path: str
    model: str = ""
    serial: str = ""
    firmware: str = ""


class Functions(Struct, frozen=True, kw_only=True):
    """All of it."""

    interfaces: tuple[Interface, ...] = ()
    rdma: tuple[RdmaDevice, ...] = ()
    controllers: tuple[Controller, ...] = ()
    disks: tuple[Disk, ...] = ()
    nodes: tuple[str, ...] = ()
    """Below /dev: of RDMA verbs, of accelerators and of rendering."""


def keep_speeds(before: Functions, after: Functions) -> Functions:
    """Keep the speeds of links that are down now: they come back with them.

    Else each time that a link comes or goes the node would announce another device.
    """
    speeds = {found.path: found.speed_mbps for found in before.interfaces}
    rates = {port.path: port.rate_mbps for found in before.rdma for port in found.ports}
    return structs.replace(
        after,
        interfaces=tuple(
            structs.replace(
                found, speed_mbps=found.speed_mbps or speeds.get(found.path)
            )
            for found in after.interfaces
        ),
        rdma=tuple(
            structs.replace(
                found,
                ports=tuple(
                    structs.replace(
                        port, rate_mbps=port.rate_mbps or rates.get(port.path)
                    )
                    for port in found.ports
                ),
            )
            for found in after.rdma
        ),
    )


def read_functions(tree: FileTree, folder: ReadableFolder) -> Functions:
    """Read what a PCI device is for; what cannot be read is left out."""
    folders = tuple(_with_virtio(folder))
    return Functions(
        interfaces=tuple(
            _read_interface(found)
            for parent in folders
            for found in parent.folders("net")
        ),
        rdma=tuple(_read_rdma(found) for found in folder.folders("infiniband")),
        controllers=tuple(_read_controller(found) for found in folder.folders("nvme")),
        disks=tuple(_read_disks(tree, folders)),
        nodes=tuple(_read_nodes(folder)),
    )


def _with_virtio(folder: ReadableFolder) -> Iterator[ReadableFolder]:
    yield folder
    for name in folder.names():
        if _VIRTIO.fullmatch(name):
            virtio = folder.into(name)
            if virtio is not None:
                yield virtio


def _path(folder: ReadableFolder) -> str:
    return "/".join(folder.parts)


def _read_interface(folder: ReadableFolder) -> Interface:
    return Interface(
        name=parse.clean_text(folder.name),
        path=_path(folder),
        mac=parse.clean_text(folder.find("address")),
        speed_mbps=parse.parse_positive(folder.find("speed")),
    )


def _read_rdma(folder: ReadableFolder) -> RdmaDevice:
    return RdmaDevice(
        name=parse.clean_text(folder.name),
        node_guid=parse.clean_text(folder.find("node_guid")),
        firmware=parse.clean_text(folder.find("fw_ver")),
        ports=tuple(
            RdmaPort(
                path=_path(port),
                number=int(port.name),
                link_layer=parse.clean_text(port.find("link_layer")),
                rate_mbps=_read_rate(port),
            )
            for port in folder.folders("ports")
            if _PORT.fullmatch(port.name)
        ),
    )


def _read_rate(port: ReadableFolder) -> int | None:
    state = parse.parse_port_state(port.find("state"))
    if state is None or state[0] != parse.PORT_ACTIVE:
        return None
    return parse.parse_port_rate(port.find("rate"))


def _read_controller(folder: ReadableFolder) -> Controller:
    return Controller(
        name=parse.clean_text(folder.name),
        path=_path(folder),
        model=parse.clean_text(folder.find("model")),
        serial=parse.clean_text(folder.find("serial")),
        firmware=parse.clean_text(folder.find("firmware_rev")),
    )


def _read_disks(tree: FileTree, folders: tuple[ReadableFolder, ...]) -> Iterator[Disk]:
    names: set[str] = set()
    for folder in folders:
        names.update(found.name for found in folder.folders("block"))
        for controller in folder.folders("nvme"):
            # With multipath the namespace below the controller is one way of many
            # (nvme0c1n1) to the disk that everybody uses (nvme0n1).
            for match in map(_NAMESPACE.fullmatch, controller.names()):
                if match:
                    names.add(f"nvme{match[1]}n{match[2]}")
    try:
        block = tree.folder("class/block")
    except TreeError:
        return
    for name in sorted(filter(_DISK.fullmatch, names)):
        disk = block.into(name)
        if disk is not None and disk.name == name:
            yield _read_disk(disk)


def _read_disk(folder: ReadableFolder) -> Disk:
    sectors = parse.parse_positive(folder.find("size"))
    holders = folder.into("holders")
    return Disk(
        name=folder.name,
        number=folder.find("dev"),
        size_bytes=None if sectors is None else sectors * _SECTOR_BYTES,
        is_divided=any(found.has("partition") for found in folder.folders()),
        is_held=holders is not None and bool(holders.names()),
    )


def _read_nodes(folder: ReadableFolder) -> Iterator[str]:
    """List the nodes that do not let their user reach beyond the device.

    Not those of management (umad, issm, card*, nvme0), which do.
    """
    for subsystem, pattern, place in _NODES:
        for found in folder.folders(subsystem):
            if pattern.fullmatch(found.name):
                yield f"{place}/{found.name}"
