"""What GPUs and partitions are offered as."""

from __future__ import annotations

from msgspec import structs

from contracts.device import Device, ResourcePool
from contracts.ids import DriverName, PoolName
from contracts.quantity import Quantity
from contracts.validate.devices import check_device
from nodeagent.sources.nvml.gpus import Fabric, Gpu, read_driver, read_gpus
from nodeagent.sources.nvml.offers import (
    Locality,
    make_counters,
    make_gpu,
    make_partition,
)
from tests.builders.nvml import play

HERE = Locality("pci0000:a0", 1)


def made(name: str) -> tuple[Gpu, list[Device]]:
    """Return the first GPU of a record, and what is offered of it."""
    player = play(name)
    gpu = read_gpus(player)[0][0]
    driver = read_driver(player)
    if not gpu.is_mig:
        return gpu, [make_gpu(gpu, driver, HERE)]
    return gpu, [make_partition(gpu, part, driver, HERE) for part in gpu.partitions]


def test_a_whole_gpu() -> None:
    (device,) = made("hgx-h100")[1]
    attributes = device.attributes
    assert device.name == "gpu-0"
    assert device.capacity["memory"].value == Quantity.parse("81559Mi")
    assert {
        key: attribute.string_value or attribute.version_value or attribute.int_value
        for key, attribute in attributes.items()
    } == {
        "type": "gpu",
        "uuid": "GPU-00000000-0000-4000-8000-000000000000",
        "productName": "NVIDIA H100 80GB HBM3",
        "brand": "Nvidia",
        "architecture": "Hopper",
        "cudaComputeCapability": "9.0.0",
        "driverVersion": "550.54.15",
        "cudaDriverVersion": "12.4.0",
        "nvlinks": 18,
        "resource.kubernetes.io/pciBusID": "0000:a4:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:a0",
        "resource.kubernetes.io/numaNode": 1,
    }


def test_versions_are_semantic_ones() -> None:
    """535.104.05 is none: semver has no leading zeros."""
    device = made("a100-mig")[1][0]
    assert device.attributes["driverVersion"].version_value == "535.104.5"


def test_a_gpu_of_a_fabric_says_domain_and_clique() -> None:
    player = play("hgx-h100")
    gpu = structs.replace(
        read_gpus(player)[0][0], fabric=Fabric(tuple(range(16)), 0, 7, 3)
    )
    attributes = make_gpu(gpu, read_driver(player), HERE).attributes
    assert attributes["fabricClique"].int_value == 7
    uuid = attributes["fabricDomain"].string_value
    assert uuid == "00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_partitions_are_named_by_profile_and_place() -> None:
    devices = made("a100-mig")[1]
    assert [device.name for device in devices] == [
        "gpu-0-mig-3g-20gb-4",
        "gpu-0-mig-2g-10gb-2",
        "gpu-0-mig-1g-5gb-1",
    ]
    assert devices[0].attributes["profile"].string_value == "3g.20gb"


def test_partitions_consume_what_their_gpu_has() -> None:
    """Each its own memory slices; all of them together no more than there is."""
    gpu, devices = made("a100-mig")
    shared = make_counters(gpu)
    used: dict[str, int] = {}
    for device in devices:
        (consumption,) = device.consumes_counters
        assert consumption.counter_set == shared.name == "gpu-0-counter-set"
        for name, counter in consumption.counters.items():
            used[name] = used.get(name, 0) + counter.value.nano
    assert {name for name in used if name.startswith("memory-slice-")} == {
        f"memory-slice-{index}" for index in range(1, 8)
    }
    assert all(used[name] <= shared.counters[name].value.nano for name in used)
    assert shared.counters["multiprocessors"].value == Quantity.of(98)


def test_what_is_offered_is_valid() -> None:
    """By the API server's rules, as contracts/validate has them."""
    for name in ("hgx-h100", "a100-mig"):
        devices = made(name)[1]
        pool = ResourcePool(
            driver=DriverName("gpu.example.com"),
            name=PoolName("n1"),
            devices=tuple(devices),
        )
        for device in pool.devices:
            assert list(check_device(device, "", selects_nodes=False)) == []
