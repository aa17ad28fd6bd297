"""Cards that can be split into parts, as NVIDIA's driver publishes MIG."""

from __future__ import annotations

import random

from msgspec import Struct

from benchmarks.worlds.ordinary.objects import (
    Json,
    attribute_is,
    claim,
    counter_set,
    device,
    device_classes,
    gang,
    member,
    node,
    pool_slices,
    request,
)


class Profile(Struct, frozen=True, kw_only=True):
    """A size of part of a card."""

    slices: int
    """Of the seven slices that compute."""
    starts: tuple[int, ...]
    """Memory slices at which such a part may begin."""
    width: int
    """Of the eight memory slices, how many it takes."""


PROFILES = {
    "1g": Profile(slices=1, starts=(0, 1, 2, 3, 4, 5, 6), width=1),
    "2g": Profile(slices=2, starts=(0, 2, 4), width=2),
    "3g": Profile(slices=3, starts=(0, 4), width=4),
    "4g": Profile(slices=4, starts=(0,), width=4),
    "7g": Profile(slices=7, starts=(0,), width=8),
}
COMPUTE_SLICES, MEMORY_SLICES = 7, 8


def mig(nodes: int, seed: int) -> list[Json]:
    """Eight cards a node, some gone; each place of a part is a device of its own."""
    draw = random.Random(seed)
    objects, free = device_classes(), 0
    for number in range(nodes):
        devices, sets = list[Json](), list[Json]()
        for card in range(8):
            if draw.random() < 0.2:
                continue
            sets.append(counter_set(f"card-{card}", _whole_card()))
            devices += _parts(card)
            free += COMPUTE_SLICES
        name = f"n{number:05d}"
        objects += [node(name, 96, 1024), *pool_slices(name, devices, sets)]
    wanted = gangs = 0
    while wanted < free * 1.2:
        (name,) = draw.choices(list(PROFILES), [40, 25, 15, 8, 12])
        (pods,) = draw.choices([1, 2, 4, 8], [70, 15, 10, 5])
        slices = PROFILES[name].slices
        wanted += slices * pods
        part = request("m", "mig", selectors=[attribute_is("profile", name)])
        cpu, memory = str(slices), f"{8 * slices}Gi"
        pod = member("w", pods, [claim("c", part)], cpu=cpu, memory=memory)
        objects.append(gang(gangs, [pod], weight=slices * pods))
        gangs += 1
    return objects


def _whole_card() -> dict[str, int]:
    return {"sm": COMPUTE_SLICES, **{f"mem{n}": 1 for n in range(MEMORY_SLICES)}}


def _parts(card: int) -> list[Json]:
    made = []
    for name, profile in PROFILES.items():
        for start in profile.starts:
            memory = range(start, start + profile.width)
            drawn = {"sm": profile.slices, **{f"mem{n}": 1 for n in memory}}
            part = device(
                f"g{card}-{name}-{start}",
                {"kind": "mig", "profile": name},
                draws={f"card-{card}": drawn},
            )
            made.append(part)
    return made
