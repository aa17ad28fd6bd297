"""What captured nodes are offered as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contracts.device import Device
from contracts.quantity import Quantity
from nodeagent.sources.sysfs.offers import list_mounted, make_device
from nodeagent.sources.sysfs.scan import Scan, scan
from nodeagent.sources.sysfs.tree import Tree
from tests.builders.sysfs import lay_out, make_spec

STANDARD = "resource.kubernetes.io/"


def devices_of(name: str, root: Path, *select: dict[str, Any]) -> dict[str, Device]:
    """Return what a captured tree offers, disks in use as well."""
    lay_out(name, root)
    found = scan(Tree(root), make_spec(root, *select, offerUsedDisks=True), Scan())
    made = (make_device(device, {}) for device in found.devices.values())
    return {device.name: device for device in made}


def values(device: Device) -> dict[str, Any]:
    """Return a device's attributes as plain values."""
    return {
        key: next(
            value
            for value in (
                attribute.string_value,
                attribute.int_value,
                attribute.bool_value,
            )
            if value is not None
        )
        for key, attribute in device.attributes.items()
    }


def test_each_gpu_of_an_hgx_node_has_a_nic_on_its_root(tmp_path: Path) -> None:
    """What a matchAttribute of a claim for a GPU and a NIC relies on."""
    devices = devices_of(
        "hgx-h100", tmp_path / "sys", {"kind": "accelerator"}, {"kind": "nic"}
    )
    roots: dict[object, list[object]] = {}
    for device in devices.values():
        roots.setdefault(values(device)[f"{STANDARD}pcieRoot"], []).append(
            values(device)["kind"]
        )
    assert len(roots) == 8
    assert all(
        sorted(map(str, kinds)) == ["accelerator", "nic"] for kinds in roots.values()
    )


def test_a_connectx_with_rdma(tmp_path: Path) -> None:
    devices = devices_of("hgx-h100", tmp_path / "sys", {"kind": "nic"})
    assert values(devices["pci-0000-a3-00-0"]) == {
        f"{STANDARD}pciBusID": "0000:a3:00.0",
        f"{STANDARD}pcieRoot": "pci0000:a0",
        f"{STANDARD}numaNode": 0,
        "kind": "nic",
        "classCode": "0x020000",
        "vendorID": "0x15b3",
        "deviceID": "0x101e",
        "kernelDriver": "mlx5_core",
        "pcieMaxSpeedMTs": 32000,
        "linkSpeedMbps": 200_000,
        "rdma": True,
        "rdmaDevice": "mlx5_7",
        "nodeGUID": "58a2:e103:00e3:f434",
        "firmware": "28.39.1002",
        "linkLayer": "Ethernet",
        "interface": "eth8",
        "mac": "02:00:00:00:00:08",
        "virtualFunction": False,
    }


def test_an_infiniband_adapter_of_an_older_kernel(tmp_path: Path) -> None:
    """What that kernel does not show is left out."""
    devices = devices_of("xeon-nvme-connectx3", tmp_path / "sys", {"kind": "nic"})
    attributes = values(devices["pci-0000-82-00-0"])
    assert attributes["linkLayer"] == "InfiniBand"
    assert attributes["linkSpeedMbps"] == 56_000
    assert "pcieMaxSpeedMTs" not in attributes
    assert values(devices["pci-0000-02-00-0"])["rdma"] is False


def test_a_disk_has_its_size(tmp_path: Path) -> None:
    """Of 512 bytes a sector, whatever the disk's own sectors are."""
    devices = devices_of("xeon-nvme-connectx3", tmp_path / "sys", {"kind": "nvme"})
    (disk,) = devices.values()
    assert disk.capacity["size"].value == Quantity.of(781422768 * 512)
    assert values(disk)["kernelDriver"] == "nvme"


def test_names_are_added_where_they_are_known(tmp_path: Path) -> None:
    lay_out("hgx-h100", tmp_path / "sys")
    options = make_spec(tmp_path / "sys", {"kind": "accelerator"})
    found = scan(Tree(tmp_path / "sys"), options, Scan())
    device = next(iter(found.devices.values()))
    names = {(0x10DE, None): "NVIDIA Corporation", (0x10DE, 0x2330): "GH100"}
    attributes = values(make_device(device, names))
    assert (attributes["vendor"], attributes["product"]) == (
        "NVIDIA Corporation",
        "GH100",
    )


def test_what_is_mounted_is_known_by_number_and_by_name() -> None:
    """Btrfs mounts have a number of their own."""
    text = (
        "36 35 259:1 / /data rw,noatime master:1 - ext4 /dev/nvme0n1p1 rw\n"
        "37 35 0:31 / /home rw - btrfs /dev/nvme1n1 rw\n"
        "garbage\n"
    )
    assert {"259:1", "nvme0n1p1", "nvme1n1"} <= list_mounted(text)
