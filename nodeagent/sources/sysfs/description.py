"""Facts about a PCI device for holders of its claim. Pure."""

from __future__ import annotations

from nodeagent.sources.source import DeviceDescription, NetworkDescription
from nodeagent.sources.sysfs.offers import FoundDevice


def make_description(
    found: FoundDevice, network: NetworkDescription | None
) -> DeviceDescription:
    """Describe a device; `network` is its first network interface."""
    pci, functions = found.pci, found.functions
    data: dict[str, str | int | tuple[str, ...]] = {"pciAddress": pci.address}
    if pci.kernel_driver:
        data["kernelDriver"] = pci.kernel_driver
    if pci.numa_node is not None:
        data["numaNode"] = pci.numa_node
    lists = {
        "interfaces": tuple(found.name for found in functions.interfaces),
        "rdmaDevices": tuple(found.name for found in functions.rdma),
        "disks": tuple(found.name for found in functions.disks),
    }
    data |= {key: names for key, names in lists.items() if names}
    return DeviceDescription(data=data, network=network)
