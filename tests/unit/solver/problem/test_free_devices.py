"""Who lacks devices by count has no place; where no room is left, none is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from contracts.ids import NodeName
from solver.allocate import allocate
from solver.problem.assemble import resolve_gangs
from solver.problem.free_devices import (
    FreeDevices,
    count_free,
    leaves_room,
    list_free,
)
from solver.problem.gangs import GangPart
from tests.builders import devices, member, member_claim, pool, request
from tests.builders.problems import PARAMETERS, snapshot_of
from tests.builders.timeline import World, worker


def part_of(world: World, name: str) -> GangPart:
    features = PARAMETERS.features
    (gang,) = resolve_gangs(world.snapshot, [world[name]], features)
    return gang


def lacks(world: World, name: str) -> bool:
    free = count_free(world.snapshot.inventory.pages)
    assert FreeDevices.of(list_free(world.snapshot.inventory.pages) or {}) == free
    return free.lacks(part_of(world, name))


def test_who_lacks_devices_has_no_place() -> None:
    draw, seen = random.Random(7), set[tuple[bool, bool]]()
    for _ in range(60):
        world = World(nodes=draw.randint(1, 3), gpus=4)
        for number in range(draw.randint(0, 4)):
            pods, gpus = draw.randint(1, 2), draw.randint(1, 3)
            record = world.submit(f"runs-{number}", pods=pods, gpus=gpus)
            asker = world.asker(record)
            (answer,) = allocate(asker.question(world.snapshot, record)).gangs
            world.cancel(record.name)
            if answer.members:
                world.start(f"started-{number}", pods=pods, gpus=gpus)
        waits = world.submit("waits", pods=draw.randint(1, 4), gpus=draw.randint(1, 4))
        problem = world.asker(waits).question(world.snapshot, waits)
        (answer,) = allocate(problem).gangs
        seen.add((lacks(world, "waits"), bool(answer.members)))
    assert seen == {(True, False), (False, True)}


def test_nobody_lacks_what_may_be_had_in_another_way() -> None:
    """All devices, admin access, shared devices, and those of no node."""
    world = World(nodes=1, gpus=2)
    world.start("runs", gpus=2)
    world.submit("all", gpus=3)
    assert lacks(world, "all")
    whole = request(mode="All")
    world.submit_members("whole", member(member_claim(whole)))
    watches = request(count=3, admin_access=True)
    world.submit_members("watches", member(member_claim(watches)))
    for name in ("whole", "watches"):
        assert not lacks(world, name)

    shared = World(nodes=1, gpus=2, allow_multiple_allocations=True)
    shared.submit("waits", gpus=3)
    assert not lacks(shared, "waits")

    anywhere = snapshot_of({"": [pool(*devices(2), name="network")]})
    free = count_free(anywhere.inventory.pages)
    assert free.anywhere
    assert list_free(anywhere.inventory.pages) is None
    assert not free.lacks(part_of(world, "all"))


def test_where_no_room_is_left_none_is_left_wherever_the_gang_begins() -> None:
    draw, seen = random.Random(3), set[tuple[bool, bool]]()
    for _ in range(400):
        now = [draw.randint(0, 4) for _ in range(draw.randint(1, 3))]
        then = [draw.randint(each, 4) for each in now]
        begins = (draw.randint(1, 3), draw.randint(1, 4))
        starts = (draw.randint(1, 3), draw.randint(1, 4))
        world = World(nodes=1)
        world.submit_members("begins", worker(*begins))
        world.submit_members("starts", worker(*starts))
        names = [NodeName(f"n-{number}") for number in range(len(now))]
        told = leaves_room(
            part_of(world, "begins"),
            dict(zip(names, now, strict=True)),
            part_of(world, "starts"),
            dict(zip(names, then, strict=True)),
        )
        seen.add((told, is_possible(now, then, begins, starts)))
    assert (False, True) not in seen
    assert len(seen) == 3


def is_possible(
    now: list[int], then: list[int], begins: tuple[int, int], starts: tuple[int, int]
) -> bool:
    """Try all places of the pods that begin now."""
    pods, each = starts
    return any(
        sum((free - used) // each for free, used in zip(then, taken, strict=True))
        >= pods
        for taken in list_places(now, *begins)
    )


def list_places(now: list[int], pods: int, each: int) -> Iterator[list[int]]:
    """List what pods may take of the nodes."""
    for counts in product(range(pods + 1), repeat=len(now)):
        taken = [count * each for count in counts]
        if sum(counts) == pods and all(t <= n for t, n in zip(taken, now, strict=True)):
            yield taken
