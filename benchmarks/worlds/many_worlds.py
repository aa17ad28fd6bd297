"""Families of worlds: what a cluster looks like, and what its gangs ask for.

Each family changes one thing of `PLAIN`, so that a weakness has a name. All is drawn by
seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct, structs

from benchmarks.worlds import mixed_nodes, mixed_pods
from benchmarks.worlds.demand import GangSize, PodKind, even_size, gangs
from benchmarks.worlds.many_shapes import (
    draw_claim_shapes,
    draw_shares,
    observe_shared,
)
from benchmarks.worlds.mixed_nodes import FREE, SHAPES, Shape
from contracts.messages import SubmitGang
from contracts.quantity import Quantity
from solver.snapshot.snapshot import Snapshot, apply

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
TAIL = 1.1
"""Exponent of the distribution of gangs with a heavy tail."""
LARGEST = 256
"""Pods of a gang of such a tail at most."""
CPUS = (1, 4, 6, 12, 16, 24)
"""CPUs for each GPU of the kinds of pod beyond the usual 30."""


class World(Struct, frozen=True, kw_only=True):
    """What is drawn from."""

    demand: float = 1.3
    """Devices asked for, by device that is free."""
    free: float = FREE
    """Share of the devices that is free."""
    shapes: Sequence[Shape] = SHAPES
    kinds: int = 30
    """Kinds of pod."""
    sizes: str = "even"
    """Of gangs: a name of `SIZES`, or `huge`."""
    pods: str = "usual"
    """`usual` kinds of pod, or `claims` or `shares` of as many shapes or sizes as there
    are kinds."""


def small_size(draw: random.Random) -> int:
    """Draw 1-3 pods."""
    return draw.randint(1, 3)


def prime_size(draw: random.Random) -> int:
    """Draw a prime number of pods, which no number of equal nodes divides."""
    return draw.choice(PRIMES)


def heavy_tailed_size(draw: random.Random) -> int:
    """Draw mostly few pods, and sometimes very many."""
    return min(LARGEST, int(draw.paretovariate(TAIL)))


def huge_size(nodes: int, draw: random.Random) -> int:
    """Draw an eighth to a half as many pods as there are nodes."""
    return draw.randint(max(1, nodes // 8), max(1, nodes // 2))


SIZES: dict[str, GangSize] = {
    "even": even_size,
    "small": small_size,
    "prime": prime_size,
    "heavy-tailed": heavy_tailed_size,
}
PLAIN = World()
FAMILIES = {
    "plain": PLAIN,
    "demand 0.8": structs.replace(PLAIN, demand=0.8),
    "demand 1.0": structs.replace(PLAIN, demand=1.0),
    "demand 2.0": structs.replace(PLAIN, demand=2.0),
    "small gangs": structs.replace(PLAIN, sizes="small"),
    "prime gangs": structs.replace(PLAIN, sizes="prime"),
    "heavy-tailed gangs": structs.replace(PLAIN, sizes="heavy-tailed"),
    "huge gangs": structs.replace(PLAIN, sizes="huge"),
    "large nodes": structs.replace(PLAIN, shapes=SHAPES[:3]),
    "small nodes": structs.replace(PLAIN, shapes=SHAPES[3:]),
    "5 kinds": structs.replace(PLAIN, kinds=5),
    "100 kinds": structs.replace(PLAIN, kinds=100),
    "1,000 claims": structs.replace(PLAIN, pods="claims", kinds=1000, sizes="small"),
    "300 shares": structs.replace(PLAIN, pods="shares", kinds=300),
    "nearly empty": structs.replace(PLAIN, free=0.95),
    "nearly full": structs.replace(PLAIN, free=0.25),
}

KEPT_CASES = (
    ("100 kinds", 300, 2),
    ("100 kinds", 300, 5),
    ("100 kinds", 300, 10),
    ("100 kinds", 300, 19),
    ("100 kinds", 2000, 4),
    ("100 kinds", 2000, 6),
    ("100 kinds", 2000, 8),
    ("100 kinds", 2000, 15),
    ("100 kinds", 2000, 16),
    ("100 kinds", 10000, 1),
    ("plain", 300, 14),
    ("prime gangs", 300, 2),
    ("nearly empty", 300, 2),
    ("demand 2.0", 300, 2),
    ("demand 2.0", 300, 10),
    ("demand 2.0", 300, 19),
    ("demand 2.0", 2000, 2),
    ("nearly full", 2000, 6),
)
"""(family, nodes, seed) of the worst instances so far, those that were solved later
included."""


def draw_world(
    world: World, nodes: int, seed: int
) -> tuple[Snapshot, Iterator[SubmitGang]]:
    """Draw a cluster of so many nodes, and the gangs that are submitted to it."""
    if world.pods == "shares":
        observations = observe_shared(nodes, seed)
    else:
        observations = mixed_nodes.observe(
            nodes, seed, shapes=world.shapes, free=world.free
        )
    snapshot, free = Snapshot(), 0
    for message, unused in observations:
        snapshot = apply(snapshot, message)
        free += unused
    # The gangs are drawn apart from the nodes: the same ones come to a fuller cluster.
    draw = random.Random(-1 - seed)
    kinds = PODS[world.pods](world.kinds, draw)
    size = SIZES.get(world.sizes) or partial(huge_size, nodes)
    return snapshot, gangs(kinds, int(free * world.demand), draw, size=size)


def draw_pod_kinds(count: int, draw: random.Random) -> tuple[PodKind, ...]:
    """Draw kinds of pod: some of the usual ones, or those and more with other CPUs."""
    usual = mixed_pods.pod_kinds()
    if count <= len(usual):
        return tuple(draw.sample(usual, count))
    others: list[PodKind] = []
    for kind in usual:
        for cpus in CPUS:
            other = _with_cpus(kind, cpus * max(1, kind.asked // mixed_nodes.EIGHTHS))
            if other not in usual and other not in others:
                others.append(other)
    return (*usual, *draw.sample(others, count - len(usual)))


PODS: dict[str, Callable[[int, random.Random], tuple[PodKind, ...]]] = {
    "usual": draw_pod_kinds,
    "claims": draw_claim_shapes,
    "shares": draw_shares,
}


def _with_cpus(kind: PodKind, cpus: int) -> PodKind:
    resources = {**kind.node.resources, "cpu": Quantity.of(cpus)}
    return structs.replace(kind, node=structs.replace(kind.node, resources=resources))
