"""Nodes of eight GPUs and eight NICs: jobs, gangs of unlike members, scarce CPUs."""

from __future__ import annotations

import random

from benchmarks.worlds.ordinary.objects import (
    DRIVER,
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

CARDS = 8
_JOB_SIZES = {
    1: 700,
    2: 80,
    4: 60,
    8: 90,
    16: 30,
    32: 18,
    64: 10,
    128: 6,
    256: 3,
    512: 2,
    1024: 1,
}
"""How often a job asks for so many GPUs, roughly as in published traces."""


def helios(nodes: int, seed: int) -> list[Json]:
    """Jobs with a heavy tail, CPUs in proportion to GPUs.

    Small jobs share a node, half of them one NUMA node of it. Large ones take whole
    nodes, with the NIC of each GPU's PCIe root.
    """
    draw = random.Random(seed)
    objects, free = device_classes(), 0
    for number in range(nodes):
        used = 0.15 if draw.random() < 0.6 else 0
        mine = _dgx(number, draw, used)
        objects += mine
        free += count_devices(mine[1:], "gpu")
    wanted = gangs = 0
    while wanted < free * 1.2:
        (gpus,) = draw.choices(list(_JOB_SIZES), list(_JOB_SIZES.values()))
        each = min(gpus, CARDS)
        pods = gpus // each
        if pods * CARDS > free / 3:
            continue
        wanted += gpus
        cpu = str(each * draw.choice([4, 8, 12, 14]))
        memory = f"{each * draw.choice([32, 64, 200])}Gi"
        claims = _job_claims(each, pods, draw)
        objects.append(gang(gangs, [member("w", pods, claims, cpu=cpu, memory=memory)]))
        gangs += 1
    return objects


def cputight(nodes: int, seed: int) -> list[Json]:
    """CPU and memory decide: odd requests, nodes with little of either."""
    draw = random.Random(seed)
    objects = device_classes()
    for number in range(nodes):
        cpus, memory = draw.randint(8, 64), draw.randint(32, 400)
        objects += _dgx(number, draw, 0.3, cpus=cpus, memory_gib=memory)
    mean_cpus = 36
    wanted, gangs = 0.0, 0
    while wanted < nodes * mean_cpus * 1.3:
        gpus = draw.choice([0, 1, 1, 1, 2, 4]) or 1
        pods = draw.choice([1, 1, 2, 4, 8])
        milli = draw.randrange(500, 16000, 250)
        wanted += pods * milli / 1000
        memory_gib = draw.randint(1, 64)
        claims = [claim("c", request("gpu", "gpu", gpus))]
        pod = member("w", pods, claims, cpu=f"{milli}m", memory=f"{memory_gib}Gi")
        objects.append(gang(gangs, [pod]))
        gangs += 1
    return objects


def twomember(nodes: int, seed: int) -> list[Json]:
    """Gangs of one to four unlike members, worth what nobody can guess from them."""
    draw = random.Random(seed)
    objects, free = device_classes(), 0
    for number in range(nodes):
        mine = _dgx(number, draw, 0.2)
        objects += mine
        free += count_devices(mine[1:], "gpu")
    wanted = gangs = 0
    while wanted < free * 1.2:
        members = []
        for number in range(draw.randint(1, 4)):
            pods = draw.choice([1, 2, 3, 5, 8])
            gpus = draw.choice([1, 2, 3, 4, 6])
            cpu, memory = str(draw.randint(1, 24)), f"{draw.randint(8, 512)}Gi"
            claims = [claim("c", request("gpu", "gpu", gpus))]
            members.append(member(f"m{number}", pods, claims, cpu=cpu, memory=memory))
            wanted += pods * gpus
        objects.append(gang(gangs, members, weight=draw.randint(1, 1000)))
        gangs += 1
    return objects


def _dgx(
    number: int,
    draw: random.Random,
    used: float,
    *,
    cpus: int = 112,
    memory_gib: int = 2048,
) -> list[Json]:
    """Make a node with a GPU and a NIC on each PCIe root; some others hold."""
    name = f"n{number:05d}"
    devices = []
    for card in range(CARDS):
        for kind in ("gpu", "nic"):
            if draw.random() < used:
                continue
            attributes = {
                "kind": kind,
                "model": "H100",
                "numaNode": card // 4,
                "uuid": f"{name}-{kind}-{card}",
                PCIE_ROOT: f"pci{card:04d}:00",
            }
            devices.append(device(f"{kind}-{card}", attributes))
    return [node(name, cpus, memory_gib), *pool_slices(name, devices)]


def _job_claims(each: int, pods: int, draw: random.Random) -> list[Json]:
    """Claim the devices of a pod of a job."""
    if each == CARDS and pods > 1:
        pair = request("gpu", "gpu"), request("nic", "nic")
        return [claim(f"r{card}", *pair, match=PCIE_ROOT) for card in range(CARDS)]
    if each in (1, CARDS):
        return [claim("c", request("gpu", "gpu", each))]
    match = f"{DRIVER}/numaNode" if draw.random() < 0.5 else None
    return [claim("c", request("gpu", "gpu", each), match=match)]
