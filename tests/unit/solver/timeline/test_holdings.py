"""What gangs hold, and pages as if they held nothing."""

from __future__ import annotations

from solver.snapshot.parts import NodePart, UsePart
from solver.timeline.holdings import free_all, read_holding
from tests.builders.timeline import World


def test_a_decided_gang_and_one_that_runs_hold_the_same() -> None:
    world = World(nodes=1)
    record = world.start("gang", gpus=4, cpu=8)
    decided = read_holding(world.snapshot, record)
    record = world.run("gang", cpu=8)
    running = read_holding(world.snapshot, record)

    assert len(decided.devices) == 4
    assert decided.amounts == {"n-0": {"cpu": 8000, "pods": 1}}
    assert running == decided


def test_a_gang_without_a_place_holds_nothing() -> None:
    world = World(nodes=1)
    record = world.submit("waits")
    holding = read_holding(world.snapshot, record)

    assert not holding.devices
    assert not holding.amounts


def test_pages_are_as_if_nobody_held_anything() -> None:
    world = World(nodes=2)
    empty = world.snapshot.inventory.pages
    records = [world.start(name, gpus=5, cpu=8) for name in "ab"]
    held = [read_holding(world.snapshot, record) for record in records]
    pages = world.snapshot.inventory.pages

    freed = free_all(pages, held)
    partly = free_all(pages, held[:1])

    assert [page.sha for page in freed] == [page.sha for page in empty]
    values = [part.value for page in partly for part in page.parts()]
    taken = [len(use.taken) for use in values if isinstance(use, UsePart)]
    left = [n.free for n in values if isinstance(n, NodePart)]
    assert sorted(taken) == [0, 5]
    assert sorted(free["cpu"] for free in left if free is not None) == [56_000, 64_000]
