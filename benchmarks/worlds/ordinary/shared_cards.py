"""The openb trace: shares of cards by consumable capacity, or whole cards."""

from __future__ import annotations

import random

from benchmarks.openb.trace import MILLI, TracePod, read_order, read_trace
from benchmarks.worlds.ordinary.objects import (
    Json,
    attribute_is,
    claim,
    device,
    device_classes,
    gang,
    member,
    node,
    pool_slices,
    request,
)


def openb(nodes: int, seed: int) -> list[Json]:
    """Nodes and pods of the trace, both drawn with return; each pod is a gang."""
    draw = random.Random(seed)
    trace = read_trace()
    arrivals = read_order(trace)
    objects, free = device_classes(), 0
    for number in range(nodes):
        like = draw.choice(trace.nodes)
        name = f"n{number:05d}"
        free += like.gpus * MILLI
        cards = [
            device(
                f"gpu-{card}",
                {"kind": "share", "model": like.model},
                shared_capacity={"milli": str(MILLI)},
            )
            for card in range(like.gpus)
        ]
        cpus, memory_gib = like.cpu_milli // 1000, like.memory_mib // 1024
        objects += [node(name, cpus, memory_gib), *pool_slices(name, cards)]
    wanted = gangs = 0
    while wanted < free * 1.1:
        pod = draw.choice(arrivals)
        wanted += pod.asked_milli
        objects.append(gang(gangs, [_member(pod)], weight=pod.asked_milli))
        gangs += 1
    return objects


def _member(pod: TracePod) -> Json:
    models = " || ".join(attribute_is("model", model) for model in pod.models)
    card = request(
        "g",
        "share",
        pod.gpus,
        selectors=[f"({models})"] if models else [],
        capacity={"milli": str(pod.gpu_milli)},
    )
    cpu, memory = f"{pod.cpu_milli}m", f"{pod.memory_mib}Mi"
    return member("w", 1, [claim("c", card)], cpu=cpu, memory=memory)
