"""Container edits for a PCI device. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from contracts.ids import DeviceID
from nodeagent.cdi import ContainerEdits, DeviceNode, name_variable
from nodeagent.sources.sysfs.offers import FoundDevice

_RDMA_CM = "infiniband/rdma_cm"
_KFD = "kfd"


def find_refusal(found: FoundDevice) -> str:
    """Return why a device cannot be given to a container; empty if it can."""
    if found.pci.kernel_driver == "nvidia":
        return "only a source of kind nvml knows the nodes of NVIDIA's driver"
    return ""


def make_edits(device: DeviceID, found: FoundDevice) -> ContainerEdits:
    """Give the device's nodes, to read and write, and variables that name them."""
    nodes = tuple(f"/dev/{name}" for name in _list_nodes(found))
    env = [name_variable("DEVICE", device, str(device))]
    if nodes:
        env.append(name_variable("NODES", device, ",".join(nodes)))
    if found.functions.rdma:
        names = ",".join(rdma.name for rdma in found.functions.rdma)
        env.append(name_variable("RDMA", device, names))
    return ContainerEdits(
        env=tuple(env),
        device_nodes=tuple(DeviceNode(path=path, permissions="rw") for path in nodes),
    )


def _list_nodes(found: FoundDevice) -> Iterator[str]:
    pci, functions = found.pci, found.functions
    yield from functions.nodes
    if functions.rdma:
        yield _RDMA_CM
    yield from (disk.name for disk in functions.disks)
    if pci.kernel_driver == "amdgpu":
        yield _KFD  # compute goes through the one node of all GPUs
    if pci.kernel_driver == "vfio-pci" and pci.iommu_group is not None:
        yield f"vfio/{pci.iommu_group}"
        yield "vfio/vfio"
