"""The cluster as it will be."""

from __future__ import annotations

from contracts.messages import ExpectedStart
from solver.allocate import allocate
from solver.timeline.asking import answer_all
from solver.timeline.futures import with_gang, without_gangs
from tests.builders.timeline import World


def test_what_an_ended_gang_held_is_free() -> None:
    world = World(nodes=2)
    first = world.start("first")
    world.start("second")
    waits = world.submit("waits")
    asker = world.asker(waits)

    now = answer_all(asker.place(world.snapshot, waits), allocate)
    later = without_gangs(world.snapshot, [first])
    fit = answer_all(asker.place(later, waits), allocate)

    assert not now
    assert now.proven
    assert first.placed is not None
    assert [pod.node for pod in fit.members] == [
        pod.node for pod in first.placed.members
    ]
    assert world.snapshot.inventory.holders != later.inventory.holders


def test_pods_and_claims_of_a_running_gang_go_with_it() -> None:
    world = World(nodes=1)
    before = world.snapshot.inventory
    world.start("runs", gpus=4, cpu=60)
    runs = world.run("runs", cpu=60)
    waits = world.submit("waits", gpus=4, cpu=60)
    asker = world.asker(waits)

    assert runs.allocated is None
    assert not answer_all(asker.find(world.snapshot, waits), allocate)
    later = without_gangs(world.snapshot, [runs])
    assert answer_all(asker.find(later, waits), allocate)
    assert [page.sha for page in later.inventory.pages] == [
        page.sha for page in before.pages
    ]


def test_a_place_may_be_held_twice_for_a_while() -> None:
    world = World(nodes=1)
    runs = world.start("runs")
    waits = world.submit("waits")
    other = world.submit("other")
    asker = world.asker(waits, other)
    later = without_gangs(world.snapshot, [runs])
    fit = answer_all(asker.place(later, waits), allocate)

    kept = with_gang(world.snapshot, waits, fit.members)
    assert not answer_all(asker.find(without_gangs(kept, [runs]), other), allocate)
    free = without_gangs(kept, [runs, kept.gangs.get(waits.key) or runs])
    assert answer_all(asker.find(free, other), allocate)


def test_what_is_kept_stays_kept_when_its_gang_is_told_so() -> None:
    world = World(nodes=1)
    waits = world.submit("waits")
    other = world.submit("other")
    asker = world.asker(waits, other)
    fit = answer_all(asker.place(world.snapshot, waits), allocate)
    world.tell("waits", ExpectedStart(because="it is next"))

    kept = with_gang(world.snapshot, waits, fit.members)
    assert not answer_all(asker.find(kept, other), allocate)
