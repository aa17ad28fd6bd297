"""The families by name, with the sizes at which they are measured."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from benchmarks.worlds.ordinary.card_parts import mig
from benchmarks.worlds.ordinary.many_selectors import selectors
from benchmarks.worlds.ordinary.objects import Json
from benchmarks.worlds.ordinary.racks import huge, nvl72
from benchmarks.worlds.ordinary.shared_cards import openb
from benchmarks.worlds.ordinary.whole_cards import cputight, helios, twomember

Draw = Callable[[int, int], list[Json]]
"""Draws the objects of so many nodes by seed."""


class Squeeze(Struct, frozen=True):
    """Less CPU and memory on every node, as factors."""

    cpu: float = 1
    memory: float = 1


class Family(Struct, frozen=True, kw_only=True):
    """How to draw a world, and how large it is measured."""

    draw: Draw
    small: int
    """Nodes, the fewest that are worth a look."""
    full: tuple[int, ...]
    """Nodes of each row at full size."""
    squeeze: Squeeze = Squeeze()


FAMILIES = {
    "helios": Family(draw=helios, small=4, full=(100,)),
    "nvl72": Family(draw=nvl72, small=18, full=(126, 252, 504)),
    "nvl72 squeezed": Family(
        draw=nvl72, small=18, full=(252, 504), squeeze=Squeeze(cpu=0.12)
    ),
    "mig": Family(draw=mig, small=1, full=(10, 40)),
    "mig squeezed": Family(
        draw=mig, small=1, full=(10, 40), squeeze=Squeeze(cpu=0.4, memory=0.4)
    ),
    "openb": Family(draw=openb, small=1, full=(5, 20)),
    "cputight": Family(draw=cputight, small=4, full=(30, 100)),
    "cputight squeezed": Family(
        draw=cputight, small=4, full=(100,), squeeze=Squeeze(cpu=0.5, memory=0.5)
    ),
    "twomember": Family(draw=twomember, small=8, full=(100,)),
    "twomember squeezed": Family(
        draw=twomember, small=8, full=(100,), squeeze=Squeeze(cpu=0.33, memory=0.3)
    ),
    "selectors": Family(draw=selectors, small=2, full=(50,)),
    "huge": Family(draw=huge, small=144, full=(1296,)),
}


def draw_world(name: str, nodes: int, seed: int) -> list[Json]:
    """Draw a world of a family."""
    family = FAMILIES[name]
    return squeezed(family.draw(nodes, seed), family.squeeze)


def squeezed(objects: list[Json], squeeze: Squeeze) -> list[Json]:
    """Leave so much of the CPU and memory of each node, in whole units, at least 1."""
    for item in objects:
        if item["kind"] == "Node":
            amounts = item["status"]["allocatable"]
            cpus, memory = int(amounts["cpu"]), int(amounts["memory"][: -len("Gi")])
            amounts["cpu"] = str(max(1, int(cpus * squeeze.cpu)))
            amounts["memory"] = f"{max(1, int(memory * squeeze.memory))}Gi"
    return objects
