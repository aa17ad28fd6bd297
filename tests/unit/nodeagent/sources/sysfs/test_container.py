"""What a container gets with a PCI device."""

from __future__ import annotations

from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from nodeagent.cdi import find_violations
from nodeagent.sources.sysfs.container import find_refusal, make_edits
from nodeagent.sources.sysfs.functions import Disk, Functions, RdmaDevice
from nodeagent.sources.sysfs.offers import FoundDevice
from nodeagent.sources.sysfs.pci import PciDevice

DEVICE = DeviceID(DriverName("pci.example.com"), PoolName("n1"), DeviceName("pci-1"))

NOTHING = Functions()


def found(
    functions: Functions = NOTHING, driver: str = "", iommu_group: int | None = None
) -> FoundDevice:
    pci = PciDevice(
        address="0000:00:02.0",
        vendor=1,
        device=1,
        class_code=0x010802,
        kernel_driver=driver,
        iommu_group=iommu_group,
    )
    return FoundDevice(pci=pci, functions=functions)


def paths(device: FoundDevice) -> list[str]:
    """Return the nodes that a container gets, in edits that break no rule."""
    edits = make_edits(DEVICE, device)
    assert list(find_violations(edits)) == []
    assert {node.permissions for node in edits.device_nodes} <= {"rw"}
    return [node.path for node in edits.device_nodes]


def test_a_disk_without_its_controller() -> None:
    """The node of the controller could format every namespace."""
    assert paths(found(Functions(disks=(Disk(name="nvme0n1"),)), "nvme")) == [
        "/dev/nvme0n1"
    ]


def test_rdma_needs_its_connection_manager_too() -> None:
    functions = Functions(
        rdma=(RdmaDevice(name="mlx5_0"),), nodes=("infiniband/uverbs0",)
    )
    assert paths(found(functions)) == [
        "/dev/infiniband/uverbs0",
        "/dev/infiniband/rdma_cm",
    ]


def test_compute_on_amd_goes_through_one_node() -> None:
    functions = Functions(nodes=("dri/renderD128",))
    assert paths(found(functions, "amdgpu")) == ["/dev/dri/renderD128", "/dev/kfd"]


def test_a_device_for_virtual_machines() -> None:
    assert paths(found(driver="vfio-pci", iommu_group=12)) == [
        "/dev/vfio/12",
        "/dev/vfio/vfio",
    ]


def test_variables_name_the_device_its_nodes_and_its_rdma_device() -> None:
    functions = Functions(
        rdma=(RdmaDevice(name="mlx5_0"),), nodes=("infiniband/uverbs0",)
    )
    assert make_edits(DEVICE, found(functions)).env == (
        "MOORINGS_DEVICE_N1_PCI_1=pci.example.com/n1/pci-1",
        "MOORINGS_NODES_N1_PCI_1=/dev/infiniband/uverbs0,/dev/infiniband/rdma_cm",
        "MOORINGS_RDMA_N1_PCI_1=mlx5_0",
    )


def test_gpus_of_nvidia_s_driver_are_given_by_nvml() -> None:
    """/sys does not say which /dev/nvidia* is which."""
    assert "nvml" in find_refusal(found(driver="nvidia"))
    assert find_refusal(found(driver="nvme")) == ""
