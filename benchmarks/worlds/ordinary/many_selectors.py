"""Every gang selects its devices by an expression that no other gang has."""

from __future__ import annotations

import random

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

MODELS = ("A100", "H100", "H200", "L40S")
MEMORIES = (40, 48, 80, 96, 141)
FIRMWARE = 30
"""Versions of firmware, from 0 on."""
NODE_GPUS = 8


def selectors(nodes: int, seed: int) -> list[Json]:
    """Ask with as many different expressions as there are devices, eight a node."""
    draw = random.Random(seed)
    objects = device_classes()
    for number in range(nodes):
        name = f"n{number:05d}"
        model, memory = draw.choice(MODELS), draw.choice(MEMORIES)
        cards = [
            device(
                f"gpu-{card}",
                {
                    "kind": "gpu",
                    "model": model,
                    "memory": memory,
                    "firmware": draw.randrange(FIRMWARE),
                    "numaNode": card // 4,
                    "uuid": f"{name}-gpu-{card}",
                },
            )
            for card in range(NODE_GPUS)
            if draw.random() >= 0.1
        ]
        objects += [node(name, 112, 2048), *pool_slices(name, cards)]
    for number, expression in enumerate(_expressions(NODE_GPUS * nodes, draw)):
        gpus = draw.choice([1, 1, 1, 2, 4])
        pods = draw.choice([1, 1, 2]) if gpus == 1 else 1
        asked = request("gpu", "gpu", gpus, selectors=[expression])
        pod = member("w", pods, [claim("c", asked)], cpu="4", memory="32Gi")
        objects.append(gang(number, [pod]))
    return objects


def _expressions(count: int, draw: random.Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found[_expression(draw)] = None
    return list(found)


def _expression(draw: random.Random) -> str:
    """Bound the firmware, and mostly say a model or two, a memory or a NUMA node."""
    least = draw.randrange(FIRMWARE - 5)
    parts = [attribute_is("firmware", least, ">=")]
    if draw.random() < 0.5:
        most = draw.randrange(least + 4, FIRMWARE)
        parts.append(attribute_is("firmware", most, "<="))
    if draw.random() < 0.5:
        models = draw.sample(MODELS, draw.choice([1, 2, 3]))
        either = " || ".join(attribute_is("model", model) for model in models)
        parts.append(f"({either})")
    if draw.random() < 0.5:
        parts.append(attribute_is("memory", draw.choice(MEMORIES[:3]), ">="))
    if draw.random() < 0.2:
        parts.append(attribute_is("numaNode", draw.choice([0, 1])))
    return " && ".join(parts)
