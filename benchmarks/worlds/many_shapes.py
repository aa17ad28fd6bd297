"""Gangs that hardly ask for the same twice: what listing states cannot hold.

Claims of hundreds of shapes for the cluster of `mixed_nodes`; and cards of which every
pod has a share of its own size.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.worlds.demand import PodKind
from benchmarks.worlds.mixed_nodes import EIGHTHS, GPU, NIC_CLASS, SHAPES, WHOLE_CLASS
from benchmarks.worlds.objects import (
    NUMA_NODE,
    PCIE_ROOT,
    Observation,
    announced,
    member_claim,
    observed_class,
    request,
)
from contracts.claim import CapacityRequirements, DeviceRequest, ExactDeviceRequest
from contracts.device import Device, DeviceCapacity, ResourcePool
from contracts.gang import MemberClaim, MemberNode
from contracts.ids import (
    DeviceClassName,
    DeviceName,
    FullyQualifiedName,
    NodeName,
    PoolName,
)
from contracts.quantity import Quantity

NICS = 0.3
"""Share of the rails with a NIC."""
MODELS = tuple(sorted({shape.gpu for shape in SHAPES}))
CARDS = (2, 4, 8)
"""Shared cards of a node."""
CARD_GIB = 80
LARGEST_GIB = 60
SHARE_CLASS = "share.example.com"
GIB = 1 << 30
MIB = 1 << 20


def draw_claim_shapes(count: int, draw: random.Random) -> tuple[PodKind, ...]:
    """Draw kinds of pod with claims of their own: up to three rails of a GPU or two."""
    kinds: dict[tuple[MemberClaim, ...], PodKind] = {}
    while len(kinds) < count:
        gpus = [draw.choice((1, 1, 2)) for _ in range(draw.choice((1, 2, 2, 3)))]
        claims = tuple(
            _draw_rail(f"rail-{number}", each, draw) for number, each in enumerate(gpus)
        )
        kinds[claims] = PodKind(
            claims=claims,
            node=_resources(4 * sum(gpus), 32 * sum(gpus)),
            asked=EIGHTHS * sum(gpus),
        )
    return tuple(kinds.values())


def _draw_rail(name: str, gpus: int, draw: random.Random) -> MemberClaim:
    model = draw.choice(MODELS)
    is_or_not = draw.choice(("==", "!=", "!="))
    expression = f'device.attributes["{GPU}"].model {is_or_not} "{model}"'
    asked = [request("gpu", WHOLE_CLASS, gpus, expression)]
    match = draw.choice(("", NUMA_NODE)) if gpus > 1 else ""
    if draw.random() < NICS:
        asked.append(request("nic", NIC_CLASS))
        match = draw.choice((NUMA_NODE, PCIE_ROOT))
    return member_claim(name, *asked, match=match)


def observe_shared(nodes: int, seed: int) -> Iterator[Observation]:
    """Return what there is of nodes with shared cards; with a node, their MiB."""
    draw = random.Random(seed)
    yield observed_class(SHARE_CLASS, f'device.driver == "{GPU}"'), 0
    for index in range(nodes):
        name, cards = NodeName(f"node-{index:05}"), draw.choice(CARDS)
        pool = ResourcePool(
            driver=GPU,
            name=PoolName(name),
            generation=1,
            devices=tuple(map(_shared_card, range(cards))),
        )
        yield announced(name, pool), cards * CARD_GIB * GIB // MIB


def _shared_card(number: int) -> Device:
    return Device(
        name=DeviceName(f"gpu-{number}"),
        capacity={
            FullyQualifiedName("memory"): DeviceCapacity(
                value=Quantity.of(CARD_GIB * GIB)
            )
        },
        allow_multiple_allocations=True,
    )


def draw_shares(count: int, draw: random.Random) -> tuple[PodKind, ...]:
    """Draw kinds of pod with a share of a card each, no two of one size."""
    sizes = draw.sample(range(GIB // MIB, LARGEST_GIB * GIB // MIB), count)
    return tuple(
        PodKind(
            claims=(member_claim("share", _share(size)),),
            asked=size,
        )
        for size in sizes
    )


def _share(mib: int) -> DeviceRequest:
    amount = Quantity.of(mib * MIB)
    exactly = ExactDeviceRequest(
        device_class_name=DeviceClassName(SHARE_CLASS),
        capacity=CapacityRequirements(requests={FullyQualifiedName("memory"): amount}),
    )
    return DeviceRequest(name="share", exactly=exactly)


def _resources(cpus: int, memory_gib: int) -> MemberNode:
    resources = {
        "cpu": Quantity.of(cpus),
        "memory": Quantity.parse(f"{memory_gib}Gi"),
    }
    return MemberNode(resources=resources)
