"""30 kinds of pod for the cluster of `mixed_nodes`.

GPUs of a model or of any, of one NUMA node, beside a NIC on their PCIe root, parts of
a card; CPUs and memory in proportion, or far more. Small pods are drawn more often.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.worlds.demand import PodKind, gangs
from benchmarks.worlds.mixed_nodes import (
    EIGHTHS,
    GPU,
    NIC_CLASS,
    PART_CLASS,
    PARTS,
    WHOLE_CLASS,
)
from benchmarks.worlds.objects import NUMA_NODE, PCIE_ROOT, member_claim, request
from contracts.gang import MemberClaim, MemberNode
from contracts.messages import SubmitGang
from contracts.quantity import Quantity

DEMAND = 1.3
"""Eighths of a GPU asked for, by eighth that is free."""
OFTEN = 3
"""How often a pod of one GPU or less is drawn for one of a larger kind."""


def full_demand(free: int, seed: int) -> Iterator[SubmitGang]:
    """Draw gangs that ask for 1.3 times what is free."""
    return gangs(pod_kinds(), int(free * DEMAND), random.Random(seed))


def pod_kinds() -> tuple[PodKind, ...]:
    """List the kinds of pod."""
    return (*_of_gpus(), *_of_one_numa_node(), *_with_nics(), *_of_parts(), *_large())


def _of_gpus() -> Iterator[PodKind]:
    models = {"": (1, 2, 4, 8), "H100": (1, 2, 4, 8), "A100": (1, 2, 4), "L40S": (1, 2)}
    for model, counts in models.items():
        for count in counts:
            yield _pod(_gpus(count, model), gpus=count)


def _of_one_numa_node() -> Iterator[PodKind]:
    for model in ("", "H100"):
        for count in (2, 4):
            yield _pod(_gpus(count, model, match=NUMA_NODE), gpus=count)


def _with_nics() -> Iterator[PodKind]:
    for model, count in (("", 1), ("H100", 1), ("A100", 1), ("", 2), ("H100", 2)):
        yield _pod(_rail("rail", count, model), gpus=count)
    for rails in (2, 4):
        claims = [_rail(f"rail-{index}", 1, "H100") for index in range(rails)]
        yield _pod(*claims, gpus=rails)


def _of_parts() -> Iterator[PodKind]:
    for profile, (_, eighths) in PARTS.items():
        cel = f'device.attributes["{GPU}"].profile == "{profile}"'
        for count in (1, 2):
            part_request = request("part", PART_CLASS, count, cel)
            claim = member_claim("parts", part_request)
            yield _pod(claim, eighths=eighths * count, cpus=2 * count)


def _large() -> Iterator[PodKind]:
    yield _pod(_gpus(1, ""), gpus=1, cpus=32)
    yield _pod(_gpus(1, ""), gpus=1, memory_gib=256)


def _gpus(count: int, model: str, match: str = "") -> MemberClaim:
    gpu_request = request("gpu", WHOLE_CLASS, count, *_of_model(model))
    return member_claim("gpus", gpu_request, match=match)


def _rail(name: str, gpus: int, model: str) -> MemberClaim:
    """Ask for GPUs and the NIC on their PCIe root."""
    gpu_request = request("gpu", WHOLE_CLASS, gpus, *_of_model(model))
    return member_claim(name, gpu_request, request("nic", NIC_CLASS), match=PCIE_ROOT)


def _of_model(model: str) -> tuple[str, ...]:
    return (f'device.attributes["{GPU}"].model == "{model}"',) if model else ()


def _pod(
    *claims: MemberClaim,
    gpus: int = 0,
    eighths: int = 0,
    cpus: int = 0,
    memory_gib: int = 0,
) -> PodKind:
    asked_eighths = gpus * EIGHTHS or eighths
    resources = {
        "cpu": Quantity.of(cpus or 8 * gpus),
        "memory": Quantity.parse(f"{memory_gib or 8 * asked_eighths}Gi"),
    }
    return PodKind(
        claims=claims,
        node=MemberNode(resources=resources),
        asked=asked_eighths,
        often=OFTEN if asked_eighths <= EIGHTHS else 1,
    )
