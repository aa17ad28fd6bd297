"""Looks at all PCI devices of a tree once, and says which are offered and why not."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, structs

from contracts.ids import DeviceName
from nodeagent.sources.sysfs.folder import FileTree, ReadableFolder, TreeError
from nodeagent.sources.sysfs.functions import Functions, keep_speeds, read_functions
from nodeagent.sources.sysfs.offers import FoundDevice, find_use, list_mounted
from nodeagent.sources.sysfs.pci import (
    PciDevice,
    list_addresses,
    open_device,
    read_pci_device,
)
from nodeagent.sources.sysfs.pci_ids import PciNames, find_names
from nodeagent.sources.sysfs.selection import is_selected
from nodeagent.sources.sysfs.spec import SysfsSpec

MAX_DEVICES = 256
"""Devices that one source offers: more is no node, and no pool that fits a slice."""
_MAX_MOUNTINFO = 4 * 1024 * 1024


class Scan(Struct, frozen=True, kw_only=True):
    """The result of one scan."""

    devices: dict[DeviceName, FoundDevice] = {}
    used: dict[DeviceName, str] = {}
    """Uses of devices by the node that began after they were offered."""
    withheld: dict[str, str] = {}
    """Why devices that are selected, or may be, are not offered, by address."""


def scan(tree: FileTree, spec: SysfsSpec, before: Scan) -> Scan:
    """Read all devices; one that cannot be read is withheld, the others are not.

    A disk that is in use is not offered; one that was offered before stays, as a pod
    may hold it.

    Raises:
        TreeError: there is no PCI bus at all.
    """
    devices: dict[DeviceName, FoundDevice] = {}
    used: dict[DeviceName, str] = {}
    withheld: dict[str, str] = {}
    mounted = _read_mounted(spec)
    for address in list_addresses(tree):
        try:
            found = find_device(tree, spec, address)
        except TreeError as error:
            withheld[address] = str(error)
            continue
        if found is None:
            continue
        known = before.devices.get(found.name)
        use = "" if spec.offer_used_disks else find_use(found, mounted)
        if len(devices) == MAX_DEVICES:
            withheld[address] = f"there are more than {MAX_DEVICES} devices"
        elif use and known is None:
            withheld[address] = use
        else:
            devices[found.name] = _with_speeds(known, found)
            if use:
                used[found.name] = use
    return Scan(devices=devices, used=used, withheld=withheld)


def find_device(tree: FileTree, spec: SysfsSpec, address: str) -> FoundDevice | None:
    """Read the device of an address; None: it is not selected.

    Raises:
        TreeError: it cannot be read.
    """
    folder = open_device(tree, address)
    pci = read_pci_device(folder)
    if not is_selected(pci, spec.select):
        return None
    return FoundDevice(
        pci=pci, functions=read_functions(tree, folder), ras_files=_list_ras(folder)
    )


def read_use(spec: SysfsSpec, found: FoundDevice) -> str:
    """Return what the node uses a device for now; empty if no use is known."""
    return "" if spec.offer_used_disks else find_use(found, _read_mounted(spec))


def read_names(spec: SysfsSpec, devices: list[PciDevice]) -> PciNames:
    """Read the names of some devices; none where no file is there."""
    ids = {(device.vendor, device.device) for device in devices}
    for name in spec.pci_ids:
        try:
            with Path(name).open(encoding="utf-8", errors="replace") as lines:
                return find_names(lines, ids)
        except OSError:
            continue
    return {}


def _list_ras(folder: ReadableFolder) -> tuple[str, ...]:
    ras = folder.into("ras")
    return () if ras is None else ras.names()


def _with_speeds(before: FoundDevice | None, found: FoundDevice) -> FoundDevice:
    known = Functions() if before is None else before.functions
    return structs.replace(found, functions=keep_speeds(known, found.functions))


def _read_mounted(spec: SysfsSpec) -> frozenset[str] | None:
    try:
        with Path(spec.mountinfo).open("rb") as file:
            data = file.read(_MAX_MOUNTINFO + 1)
    except OSError:
        return None
    if len(data) > _MAX_MOUNTINFO:
        return None
    return list_mounted(data.decode("utf-8", "replace"))
