"""Turns a PCI device into a DRA device: name, attributes and capacity. Pure."""

from __future__ import annotations

from msgspec import Struct

from contracts.device import Device, DeviceAttribute, DeviceCapacity
from contracts.ids import DeviceName
from contracts.quantity import Quantity
from nodeagent.sources.sysfs.functions import Functions
from nodeagent.sources.sysfs.pci import PciDevice
from nodeagent.sources.sysfs.pci_ids import PciNames
from nodeagent.sources.sysfs.selection import kind_of

_STANDARD = "resource.kubernetes.io/"


class FoundDevice(Struct, frozen=True, kw_only=True):
    """A selected device, as it was found."""

    pci: PciDevice
    functions: Functions
    ras_files: tuple[str, ...] = ()
    """Files of its folder `ras`, where amdgpu counts memory errors."""

    @property
    def name(self) -> DeviceName:
        """Its name in the pool: the address, which is stable over restarts."""
        address = self.pci.address.lower().replace(":", "-").replace(".", "-")
        return DeviceName(f"pci-{address}")


def list_mounted(mountinfo: str) -> frozenset[str]:
    """List what is mounted, by `major:minor` and by the name below /dev.

    By both: btrfs has numbers of its own. Source: proc(5), /proc/pid/mountinfo.
    """
    mounted: set[str] = set()
    for line in mountinfo.splitlines():
        fields, _, kind = line.partition(" - ")
        mounted.update(fields.split()[2:3])
        mounted.update(source.removeprefix("/dev/") for source in kind.split()[1:2])
    return frozenset(mounted)


def find_use(found: FoundDevice, mounted: frozenset[str] | None) -> str:
    """Return what the node itself uses a disk for; empty if no use is known.

    `mounted` is None where nobody could say what is mounted.
    """
    for disk in found.functions.disks:
        if mounted is None:
            return f"whether {disk.name} is mounted cannot be read"
        if disk.number in mounted or disk.name in mounted:
            return f"{disk.name} is mounted"
        if disk.is_divided:
            return f"{disk.name} has partitions"
        if disk.is_held:
            return f"{disk.name} has holders"
    return ""


def make_device(found: FoundDevice, names: PciNames) -> Device:
    """Write a device with all that is known of it; what is unknown is left out."""
    texts = {**_pci_texts(found.pci, names), **_function_texts(found.functions)}
    numbers = {
        f"{_STANDARD}numaNode": found.pci.numa_node,
        "pcieMaxSpeedMTs": found.pci.max_link_speed,
        "pcieWidth": found.pci.link_width,
        "linkSpeedMbps": _link_speed(found.functions),
    }
    flags = {
        "rdma": bool(found.functions.rdma),
        "virtualFunction": found.pci.is_virtual_function,
    }
    attributes = {
        **{key: DeviceAttribute(string_value=text) for key, text in texts.items()},
        **{key: DeviceAttribute(int_value=number) for key, number in numbers.items()},
        **{key: DeviceAttribute(bool_value=flag) for key, flag in flags.items()},
    }
    return Device(
        name=found.name,
        attributes={
            key: attribute
            for key, attribute in sorted(attributes.items())
            if attribute != DeviceAttribute() and attribute.string_value != ""
        },
        capacity=_make_capacity(found.functions),
    )


def _pci_texts(pci: PciDevice, names: PciNames) -> dict[str, str]:
    return {
        f"{_STANDARD}pciBusID": pci.bus_id,
        f"{_STANDARD}pcieRoot": pci.root,
        "kind": kind_of(pci).value,
        "classCode": f"0x{pci.class_code:06x}",
        "vendorID": f"0x{pci.vendor:04x}",
        "deviceID": f"0x{pci.device:04x}",
        "vendor": names.get((pci.vendor, None), ""),
        "product": names.get((pci.vendor, pci.device), ""),
        "kernelDriver": pci.kernel_driver,
    }


def _function_texts(functions: Functions) -> dict[str, str]:
    texts: dict[str, str] = {}
    if functions.interfaces:
        interface = functions.interfaces[0]
        texts |= {"interface": interface.name, "mac": interface.mac}
    if functions.rdma:
        rdma = functions.rdma[0]
        layers = [port.link_layer for port in rdma.ports]
        texts |= {
            "rdmaDevice": rdma.name,
            "nodeGUID": rdma.node_guid,
            "firmware": rdma.firmware,
            "linkLayer": layers[0] if layers else "",
        }
    if functions.controllers:
        controller = functions.controllers[0]
        texts |= {
            "model": controller.model,
            "serial": controller.serial,
            "firmware": controller.firmware,
        }
    return texts


def _link_speed(functions: Functions) -> int | None:
    """Return the fastest link's speed."""
    speeds = [interface.speed_mbps for interface in functions.interfaces]
    speeds += [port.rate_mbps for rdma in functions.rdma for port in rdma.ports]
    return max((speed for speed in speeds if speed is not None), default=None)


def _make_capacity(functions: Functions) -> dict[str, DeviceCapacity]:
    sizes = [disk.size_bytes for disk in functions.disks if disk.size_bytes]
    if not sizes:
        return {}
    return {"size": DeviceCapacity(value=Quantity.of(sum(sizes)))}
