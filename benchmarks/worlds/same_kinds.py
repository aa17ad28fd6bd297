"""A large cluster of equal nodes that are used in few different ways.

Every node has 8 GPUs in 2 NUMA nodes; a GPU is free with one probability, so that by
NUMA node 15 kinds of node come about, however many nodes there are. Every GPU has a
uuid and a PCIe root of its own, as real drivers publish. 7 kinds of pod.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.worlds.demand import PodKind, gangs
from benchmarks.worlds.objects import (
    NUMA_NODE,
    PCIE_ROOT,
    Observation,
    announced,
    member_claim,
    number,
    observed_class,
    observed_holder,
    request,
    text,
)
from contracts.device import Device, DeviceCapacity, ResourcePool
from contracts.gang import MemberClaim
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.messages import SubmitGang
from contracts.quantity import Quantity
from solver.snapshot.snapshot import Snapshot, apply

DRIVER = DriverName("gpu.example.com")
CLASS = "gpu.example.com"
GPUS = 8
FREE = 0.64375
"""Share of the GPUs that is free: 51,500 of 80,000."""
DEMAND = 1.3
"""GPUs asked for, by free GPU."""
MODEL = f'device.attributes["{DRIVER}"].model == "H100"'


def cluster(nodes: int, seed: int, *, free: float = FREE) -> tuple[Snapshot, int]:
    """Believe in so many nodes; gives the count of free GPUs, too."""
    snapshot, left = Snapshot(), 0
    for message, unused in observe(nodes, seed, free=free):
        snapshot = apply(snapshot, message)
        left += unused
    return snapshot, left


def observe(nodes: int, seed: int, *, free: float = FREE) -> Iterator[Observation]:
    """Return what there is; with the announcement of a node, how many GPUs are free."""
    draw = random.Random(seed)
    yield observed_class(CLASS, f'device.driver == "{DRIVER}"'), 0
    for index in range(nodes):
        name = NodeName(f"node-{index:05}")
        pool = _pool(name)
        taken = [
            DeviceID(DRIVER, pool.name, device.name)
            for device in pool.devices
            if draw.random() >= free
        ]
        yield announced(name, pool), GPUS - len(taken)
        if taken:
            yield observed_holder(name, taken), 0


def _pool(node: NodeName) -> ResourcePool:
    memory = DeviceCapacity(value=Quantity.parse("80Gi"))
    devices = tuple(
        Device(
            name=DeviceName(f"gpu-{index}"),
            attributes={
                "model": text("H100"),
                "index": number(index),
                "uuid": text(f"GPU-{node}-{index}"),
                NUMA_NODE: number(index // (GPUS // 2)),
                PCIE_ROOT: text(f"pci-{node}-{index}"),
            },
            capacity={"memory": memory},
        )
        for index in range(GPUS)
    )
    return ResourcePool(
        driver=DRIVER, name=PoolName(node), generation=1, devices=devices
    )


def pod_kinds() -> tuple[PodKind, ...]:
    """List the 7 kinds of pod: 1, 2, 4 or 8 GPUs, some of one NUMA node."""

    def gpus(count: int, match: str = "", name: str = "gpus") -> MemberClaim:
        return member_claim(name, request("gpu", CLASS, count, MODEL), match=match)

    pair = (gpus(2, NUMA_NODE, "left"), gpus(2, NUMA_NODE, "right"))
    return (
        PodKind(claims=(gpus(1),), asked=1),
        PodKind(claims=(gpus(2),), asked=2),
        PodKind(claims=(gpus(2, NUMA_NODE),), asked=2),
        PodKind(claims=(gpus(4),), asked=4),
        PodKind(claims=(gpus(4, NUMA_NODE),), asked=4),
        PodKind(claims=(gpus(8),), asked=8),
        PodKind(claims=pair, asked=4),
    )


def full_demand(free: int, seed: int) -> Iterator[SubmitGang]:
    """Draw gangs that ask for 1.3 times what is free."""
    return gangs(pod_kinds(), int(free * DEMAND), random.Random(seed))
