"""A cluster of 8 shapes of node, each node used differently.

GPUs and NICs hang on PCIe roots in NUMA nodes; the cards of two shapes can be had
whole or in parts that draw from one counter. Nodes have CPUs and memory, of which
other pods leave a part. What is free is counted in eighths of a GPU.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from msgspec import Struct

from benchmarks.worlds.objects import (
    CLUSTER,
    NUMA_NODE,
    PCIE_ROOT,
    Observation,
    announced,
    number,
    observed_class,
    observed_holder,
    text,
)
from contracts.device import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    ResourcePool,
)
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.messages import ObjectObserved
from contracts.quantity import Quantity
from solver.snapshot.snapshot import Snapshot, apply

GPU, NIC = DriverName("gpu.example.com"), DriverName("nic.example.com")
WHOLE_CLASS, PART_CLASS, NIC_CLASS = "gpu.example.com", "part.example.com", NIC
EIGHTHS = 8
PARTS = {"half": (2, 4), "quarter": (4, 2)}
"""What else a partitionable card can be had as: how many, and eighths of each."""
FREE = 0.59
"""Share of the cards and NICs that is free."""
Root = tuple[int, int, int]
"""(NUMA node, GPUs, NICs) of a PCIe root."""


class Shape(Struct, frozen=True):
    """One model of node."""

    gpu: str
    roots: tuple[Root, ...]
    cpus: int
    memory_gib: int
    partitionable: bool = False

    @property
    def gpus(self) -> int:
        """Count its GPUs."""
        return sum(root[1] for root in self.roots)


SHAPES = (
    Shape("H100", ((0, 2, 1), (0, 2, 1), (1, 2, 1), (1, 2, 1)), 192, 2048),
    Shape("H100", tuple((root // 4, 1, 1) for root in range(8)), 224, 2048),
    Shape("A100", ((0, 2, 1), (0, 2, 0), (1, 2, 1), (1, 2, 0)), 128, 1024),
    Shape("A100", ((0, 2, 1), (1, 2, 1)), 64, 512),
    Shape("L40S", ((0, 1, 1), (0, 1, 0), (1, 1, 1), (1, 1, 0)), 64, 512),
    Shape("L40S", ((0, 1, 0), (0, 1, 0)), 32, 256),
    Shape("A30", tuple((root // 2, 1, 1) for root in range(4)), 96, 768, True),
    Shape("A30", ((0, 1, 0), (1, 1, 0)), 48, 384, True),
)


def cluster(
    nodes: int, seed: int, *, shapes: Sequence[Shape] = SHAPES, free: float = FREE
) -> tuple[Snapshot, int]:
    """Believe in so many nodes; gives the free eighths of GPUs, too.

    `free`: share of the cards and NICs that nobody has.
    """
    snapshot, left = Snapshot(), 0
    for message, unused in observe(nodes, seed, shapes=shapes, free=free):
        snapshot = apply(snapshot, message)
        left += unused
    return snapshot, left


def observe(
    nodes: int, seed: int, *, shapes: Sequence[Shape] = SHAPES, free: float = FREE
) -> Iterator[Observation]:
    """Return what there is; with the announcement of a node, the free eighths of it."""
    draw = random.Random(seed)
    gpus = f'device.driver == "{GPU}" && device.attributes["{GPU}"].type == '
    yield observed_class(WHOLE_CLASS, f'{gpus}"gpu"'), 0
    yield observed_class(PART_CLASS, f'{gpus}"part"'), 0
    yield observed_class(NIC_CLASS, f'device.driver == "{NIC}"'), 0
    for index in range(nodes):
        name, shape = NodeName(f"node-{index:05}"), draw.choice(shapes)
        taken, unused = _use(name, shape, free, draw)
        yield announced(name, *_pools(name, shape)), unused
        if taken:
            yield observed_holder(name, taken), 0
        used = 1 - unused / (EIGHTHS * shape.gpus)
        yield _node(name, shape, used, draw), 0


def _pools(node: NodeName, shape: Shape) -> Iterator[ResourcePool]:
    gpus: list[Device] = []
    nics: list[Device] = []
    card = 0
    for root, (numa, gpu_count, nic_count) in enumerate(shape.roots):
        place = {NUMA_NODE: number(numa), PCIE_ROOT: text(f"pci-{node}-{root}")}
        for _ in range(gpu_count):
            gpus.extend(_card(f"{node}-{card}", f"gpu-{card}", shape, place))
            card += 1
        nics.extend(
            Device(
                name=DeviceName(f"nic-{root}-{index}"),
                attributes={"mac": text(f"mac-{node}-{root}-{index}"), **place},
            )
            for index in range(nic_count)
        )
    counters = {"eighths": Counter(value=Quantity.of(EIGHTHS))}
    yield ResourcePool(
        driver=GPU,
        name=PoolName(node),
        generation=1,
        devices=tuple(gpus),
        shared_counters=tuple(
            CounterSet(name=f"gpu-{index}", counters=counters)
            for index in range(card if shape.partitionable else 0)
        ),
    )
    if nics:
        name = PoolName(node)
        yield ResourcePool(driver=NIC, name=name, generation=1, devices=tuple(nics))


def _card(
    uuid: str, name: str, shape: Shape, place: dict[str, DeviceAttribute]
) -> Iterator[Device]:
    """List what a card can be had as: itself, or parts of it."""
    attributes = {"model": text(shape.gpu), "uuid": text(f"GPU-{uuid}"), **place}
    yield Device(
        name=DeviceName(name),
        attributes={"type": text("gpu"), **attributes},
        consumes_counters=_draws(name, EIGHTHS) if shape.partitionable else (),
    )
    for profile, (count, eighths) in PARTS.items() if shape.partitionable else ():
        kind = {"type": text("part"), "profile": text(profile)}
        for index in range(count):
            yield Device(
                name=DeviceName(f"{name}-{profile}-{index}"),
                attributes={**kind, **attributes},
                consumes_counters=_draws(name, eighths),
            )


def _draws(card: str, eighths: int) -> tuple[DeviceCounterConsumption, ...]:
    counters = {"eighths": Counter(value=Quantity.of(eighths))}
    return (DeviceCounterConsumption(counter_set=card, counters=counters),)


def _use(
    node: NodeName, shape: Shape, free: float, draw: random.Random
) -> tuple[list[DeviceID], int]:
    """Draw what is taken of a node; gives what is left in eighths of a GPU, too."""
    pool, taken, left = PoolName(node), list[DeviceID](), 0
    for card in range(shape.gpus):
        names, used = [f"gpu-{card}"], EIGHTHS
        if draw.random() < free:
            names, used = [], 0
        elif shape.partitionable and draw.random() < free:
            profile = draw.choice(list(PARTS))
            names, used = [f"gpu-{card}-{profile}-0"], PARTS[profile][1]
        taken.extend(DeviceID(GPU, pool, DeviceName(name)) for name in names)
        left += EIGHTHS - used
    for root, (_, _, nics) in enumerate(shape.roots):
        taken.extend(
            DeviceID(NIC, pool, DeviceName(f"nic-{root}-{index}"))
            for index in range(nics)
            if draw.random() >= free
        )
    return taken, left


def _node(
    name: NodeName, shape: Shape, used: float, draw: random.Random
) -> ObjectObserved:
    """Observe a Node; allocatable is what pods without devices leave of it."""
    share = 1 - used * draw.uniform(0.7, 1.0)
    cpus = 4 * round(shape.cpus * share / 4)
    memory = 16 * round(shape.memory_gib * share / 16)
    raw = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": {"cpu": f"{cpus}", "memory": f"{memory}Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return ObjectObserved(cluster=CLUSTER, kind="Node", key=name, object=raw)
