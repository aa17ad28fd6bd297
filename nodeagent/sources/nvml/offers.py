"""Turns GPUs and their partitions into DRA devices. Pure.

A partitioned GPU is a counter set (KEP-4815): what it has of multiprocessors, engines,
memory, and one counter for each memory slice, which partitions consume. Attributes and
counters have the names that NVIDIA's own DRA driver uses, so that selectors written for
it mean the same here.
"""

from __future__ import annotations

import re

from msgspec import Struct

from contracts.device import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
)
from contracts.ids import DeviceName
from contracts.quantity import Quantity
from nodeagent.sources.nvml.gpus import Driver, Gpu, MigDevice, MigPlacement, Profile
from nodeagent.sources.sysfs.parse import clean_text

_STANDARD = "resource.kubernetes.io/"
_MIB = 2**20
_NO_NAME = re.compile(r"[^a-z0-9]+", re.ASCII)
_ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
}
"""NVML_DEVICE_ARCH_*."""
_BRANDS = {
    1: "Quadro",
    2: "Tesla",
    5: "GeForce",
    6: "Titan",
    12: "QuadroRTX",
    13: "NvidiaRTX",
    14: "Nvidia",
}
"""NVML_BRAND_*."""


class Locality(Struct, frozen=True):
    """Where a GPU is in its machine, as /sys has it."""

    root: str = ""
    numa_node: int | None = None


def name_gpu(gpu: Gpu) -> DeviceName:
    """Name a GPU by its minor number, as its device node is."""
    return DeviceName(f"gpu-{gpu.minor}")


def name_partition(gpu: Gpu, partition: MigDevice) -> DeviceName:
    """Name a partition by its profile and place, such as `gpu-0-mig-1g-10gb-4`.

    Not by its UUID: made anew in the same place it is the same device.
    """
    profile = _NO_NAME.sub("-", _profile_name(partition.profile).lower()).strip("-")
    return DeviceName(f"{name_gpu(gpu)}-mig-{profile}-{partition.placement.start}")


def make_gpu(gpu: Gpu, driver: Driver, locality: Locality) -> Device:
    """Write a GPU that is not partitioned."""
    memory = gpu.memory_bytes
    return Device(
        name=name_gpu(gpu),
        attributes={
            "type": DeviceAttribute(string_value="gpu"),
            "uuid": DeviceAttribute(string_value=gpu.uuid),
            **_list_common(gpu, driver, locality),
        },
        capacity={"memory": DeviceCapacity(value=Quantity.of(memory))}
        if memory is not None
        else {},
    )


def make_partition(
    gpu: Gpu, partition: MigDevice, driver: Driver, locality: Locality
) -> Device:
    """Write a partition, and what it consumes of its GPU."""
    amounts = _list_amounts(partition.profile)
    return Device(
        name=name_partition(gpu, partition),
        attributes={
            "type": DeviceAttribute(string_value="mig"),
            "uuid": DeviceAttribute(string_value=partition.uuid),
            "parentUUID": DeviceAttribute(string_value=gpu.uuid),
            "profile": DeviceAttribute(string_value=_profile_name(partition.profile)),
            **_list_common(gpu, driver, locality),
        },
        capacity={
            name: DeviceCapacity(value=Quantity.of(amount))
            for name, amount in amounts.items()
        },
        consumes_counters=(
            DeviceCounterConsumption(
                counter_set=_counter_set(gpu),
                counters=_make_counters(amounts, partition.placement),
            ),
        ),
    )


def make_counters(gpu: Gpu) -> CounterSet:
    """Write what the partitions of a GPU share.

    That is the most that any profile has of anything, and all memory slices.
    """
    totals: dict[str, int] = {}
    for profile in gpu.profiles:
        for name, amount in _list_amounts(profile).items():
            totals[name] = max(totals.get(name, 0), amount)
    slices = max(
        (found.placement.start + found.placement.size for found in gpu.partitions),
        default=0,
    )
    whole = MigPlacement(0, slices)
    return CounterSet(name=_counter_set(gpu), counters=_make_counters(totals, whole))


def _counter_set(gpu: Gpu) -> str:
    return f"{name_gpu(gpu)}-counter-set"


def _profile_name(profile: Profile) -> str:
    """Return `1g.10gb` of `MIG 1g.10gb`; older drivers tell no names."""
    name = clean_text(profile.name).removeprefix("MIG ")
    if name:
        return name
    return f"{profile.slice_count}g.{round(profile.memory_size_mb / 1024)}gb"


def _list_amounts(profile: Profile) -> dict[str, int]:
    return {
        "multiprocessors": profile.multiprocessor_count,
        "copyEngines": profile.copy_engine_count,
        "decoders": profile.decoder_count,
        "encoders": profile.encoder_count,
        "jpegEngines": profile.jpeg_count,
        "ofaEngines": profile.ofa_count,
        "memory": profile.memory_size_mb * _MIB,
    }


def _make_counters(
    amounts: dict[str, int], placement: MigPlacement
) -> dict[str, Counter]:
    counters = {
        re.sub(r"([A-Z])", r"-\1", name).lower(): Counter(value=Quantity.of(amount))
        for name, amount in amounts.items()
    }
    for index in range(placement.start, placement.start + placement.size):
        counters[f"memory-slice-{index}"] = Counter(value=Quantity.of(1))
    return counters


def _list_common(
    gpu: Gpu, driver: Driver, locality: Locality
) -> dict[str, DeviceAttribute]:
    """Write what a GPU and its partitions have in common."""
    fabric = gpu.fabric if gpu.fabric is not None and gpu.fabric.is_joined else None
    texts = {
        f"{_STANDARD}pciBusID": gpu.bus_id,
        f"{_STANDARD}pcieRoot": locality.root,
        "productName": clean_text(gpu.name),
        "brand": _BRANDS.get(gpu.brand, ""),
        "architecture": _ARCHITECTURES.get(gpu.architecture, ""),
        "fabricDomain": fabric.uuid if fabric else "",
    }
    versions = {
        "cudaComputeCapability": ".".join(map(str, gpu.compute)),
        "driverVersion": driver.driver,
        "cudaDriverVersion": f"{driver.cuda // 1000}.{driver.cuda % 1000 // 10}",
    }
    numbers = {
        f"{_STANDARD}numaNode": locality.numa_node,
        "fabricClique": fabric.clique_id if fabric and fabric.uuid else None,
        "nvlinks": gpu.active_links or None,
    }
    return {
        **{
            key: DeviceAttribute(string_value=text)
            for key, text in texts.items()
            if text
        },
        **{
            key: DeviceAttribute(version_value=version)
            for key, text in versions.items()
            if (version := _make_version(text))
        },
        **{
            key: DeviceAttribute(int_value=number)
            for key, number in numbers.items()
            if number is not None
        },
    }


def _make_version(text: str) -> str:
    """Write a version as semver has it: three numbers without leading zeros."""
    parts = text.split(".")[:3]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        return ""
    numbers = [int(part) for part in parts]
    if not any(numbers):
        return ""
    return ".".join(map(str, (*numbers, 0, 0)[:3]))
