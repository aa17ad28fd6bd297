"""Racks of 18 nodes with four GPUs each, and jobs that must stay in a rack."""

from __future__ import annotations

import random

from benchmarks.worlds.ordinary.objects import (
    PCIE_ROOT,
    Json,
    claim,
    count_devices,
    device,
    device_classes,
    gang,
    member,
    node,
    pool_slices,
    request,
)

RACK_NODES, BLOCK_NODES = 18, 144
NODE_GPUS = 4
GROUP = 16
"""Pods that a large job needs in one rack."""
_JOB_PODS = {
    1: 20,
    2: 20,
    4: 25,
    6: 10,
    8: 20,
    9: 8,
    16: 15,
    18: 10,
    32: 5,
    64: 3,
    128: 1,
}
"""How often a job has so many pods."""


def nvl72(nodes: int, seed: int) -> list[Json]:
    """Jobs of one rack, or in groups of 16 nodes a rack, those of 32 in one block."""
    draw = random.Random(seed)
    objects, free = device_classes(), 0
    for number in range(nodes):
        devices = _node_devices(number)
        if draw.random() < 0.1:
            devices = devices[: draw.choice([0, 2, 4, 6])]
        mine = _rack_node(number, devices)
        objects += mine
        free += count_devices(mine[1:], "gpu")
    wanted = gangs = 0
    while wanted < free * 1.15:
        (pods,) = draw.choices(list(_JOB_PODS), list(_JOB_PODS.values()))
        gpus = draw.choice([4, 4, 4, 2, 1]) if pods <= 8 else NODE_GPUS
        if pods * gpus > free / 3:
            continue
        wanted += pods * gpus
        objects.append(_job(gangs, pods, gpus, _topology(pods)))
        gangs += 1
    return objects


def huge(nodes: int, seed: int) -> list[Json]:
    """One gang in groups of 16 pods, and too few racks that can hold a group.

    Of 72 racks 51 can, and the gang has 64 groups: 4,096 GPUs at 1,296 nodes, other
    sizes in proportion. All racks together have enough whole nodes, so only counting
    racks shows that the answer is no. The seed says which racks are short of nodes.
    """
    draw = random.Random(seed)
    racks = nodes // RACK_NODES
    able = set(draw.sample(range(racks), racks * 51 // 72))
    objects = device_classes()
    for number in range(racks * RACK_NODES):
        rack, place = divmod(number, RACK_NODES)
        devices = _node_devices(number)
        if rack not in able and place >= GROUP - 1:
            devices = devices[: len(devices) // 2]
        objects += _rack_node(number, devices)
    pods = racks * 64 // 72 * GROUP
    groups = [{"key": "rack", "groupSize": GROUP}]
    return [*objects, _job(0, pods, NODE_GPUS, groups)]


def _node_devices(number: int) -> list[Json]:
    """Make a GPU and a NIC on each PCIe root."""
    rack = f"r{number // RACK_NODES:03d}"
    return [
        device(
            f"{kind}-{card}", {"kind": kind, "clique": rack, PCIE_ROOT: f"pci{card}"}
        )
        for card in range(NODE_GPUS)
        for kind in ("gpu", "nic")
    ]


def _rack_node(number: int, devices: list[Json]) -> list[Json]:
    name = f"n{number:05d}"
    labels = {
        "rack": f"r{number // RACK_NODES:03d}",
        "block": f"b{number // BLOCK_NODES}",
    }
    return [node(name, 144, 960, labels), *pool_slices(name, devices)]


def _topology(pods: int) -> list[Json]:
    if pods <= RACK_NODES:
        return [{"key": "rack"}]
    groups: list[Json] = [{"key": "rack", "groupSize": GROUP}]
    return [*groups, {"key": "block"}] if pods <= 32 else groups


def _job(number: int, pods: int, gpus: int, topology: list[Json]) -> Json:
    claims = [claim("gpus", request("gpu", "gpu", gpus))]
    if gpus == NODE_GPUS:
        claims.append(claim("nics", request("nic", "nic", gpus)))
    pod = member("w", pods, claims, cpu="8", memory="64Gi")
    return gang(number, [pod], **({"topology": topology} if pods > 1 else {}))
