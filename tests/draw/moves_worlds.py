"""Tiny fragmented fleets, by seed."""

from __future__ import annotations

import random

from msgspec import Struct

from contracts.lifecycle import GangRecord
from solver.timeline.defragment import FoundMoves
from solver.timeline.futures import Members, without_gangs
from tests.builders.timeline import World, worker
from tests.oracles.brute_moves import Place, SizedGang, check_moves


class MovesWorld(Struct, frozen=True):
    """A world, and the same in plain numbers."""

    world: World
    nodes: int
    gpus: int
    gangs: dict[str, SizedGang]

    @property
    def fleet(self) -> dict[str, int]:
        """Count the devices of each node."""
        return {f"n-{number}": self.gpus for number in range(self.nodes)}


def draw_fragmented(
    seed: int, *, nodes: int = 4, gpus: int = 4, left: int = 0
) -> MovesWorld:
    """Draw a full fleet, on which all but a few gangs have ended.

    `left`: so many run on; 0: some number.
    """
    draw = random.Random(seed)
    left = left or draw.randint(3, 6)
    world, came = World(nodes, gpus), list[str]()
    for number in range(nodes * gpus):
        name = f"g{number}"
        pods, each = draw.choice((1, 1, 2)), draw.choice((1, 1, 2, 2, 3))
        if start(world, name, pods, each):
            came.append(name)
            if draw.random() < 0.3:
                world.run(name)
    draw.shuffle(came)
    while len(came) > left:
        world.snapshot = without_gangs(world.snapshot, [world[came.pop()]])
    plain = {name: read_plain(world[name]) for name in sorted(came)}
    return MovesWorld(world, nodes, gpus, plain)


def start(world: World, name: str, pods: int, gpus: int) -> bool:
    """Start a gang if it has a place."""
    before = world.snapshot
    try:
        world.start_members(name, worker(pods, gpus))
    except AssertionError:
        world.snapshot = before
        return False
    return True


def read_plain(record: GangRecord) -> SizedGang:
    """Write a gang down in plain numbers."""
    assert record.placed is not None
    nodes = tuple(str(pod.node) for pod in record.placed.members)
    return SizedGang(read_sizes(record), nodes)


def read_sizes(record: GangRecord) -> tuple[int, ...]:
    """Count the devices of each pod of a gang with a place."""
    assert record.placed is not None
    return tuple(len(devices) for _, devices in read_places(record.placed.members))


def read_places(members: Members) -> list[Place]:
    """List the node and the devices of each pod."""
    return [
        (
            str(pod.node),
            frozenset(
                str(result.device_id)
                for each in pod.claims
                for result in each.allocation.devices.results
            ),
        )
        for pod in members
    ]


def check(drawn: MovesWorld, found: FoundMoves) -> list[str]:
    """Check every step of moves in plain Python."""
    fleet = {
        node: frozenset(f"gpu.example.com/{node}/gpu-{n}" for n in range(gpus))
        for node, gpus in drawn.fleet.items()
    }
    places = {}
    for name in drawn.gangs:
        placed = drawn.world[name].placed
        assert placed is not None
        places[name] = read_places(placed.members)
    steps = [(step.record.name, read_places(step.members)) for step in found.steps]
    return check_moves(fleet, places, steps, list(found.nodes))
