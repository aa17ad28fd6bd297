"""Whose end lets a gang in."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from solver.allocate import allocate
from solver.timeline import victims
from solver.timeline.asking import answer_all
from solver.timeline.candidates import Candidate
from solver.timeline.victims import Victims, find_victims
from tests.builders import topology_rule
from tests.builders.timeline import World


def find(world: World, started: Mapping[str, int], now_s: int = 1000) -> Victims:
    """Find victims for the gang `waits` among those that started then."""
    waits = world["waits"]
    candidates = [
        Candidate(record=world[name], started_s=at) for name, at in started.items()
    ]
    asker = world.asker(waits)
    asking = find_victims(world.snapshot, waits, asker, candidates, now_s)
    return answer_all(asking, allocate)


def names(found: Victims) -> list[str]:
    return [each.record.name for each in found.victims]


def test_least_work_is_lost() -> None:
    world = World(nodes=2)
    started = {"old": 0, "young": 900}
    for name in started:
        world.start(name)
    world.submit("waits", priority=1)

    found = find(world, started)

    assert names(found) == ["young"]
    assert found.proven
    assert found.cost == found.bound
    assert found.cost.lost_s == 800
    placed = world["young"].placed
    assert placed is not None
    assert [pod.node for pod in found.members] == [pod.node for pod in placed.members]


def test_nobody_ends_where_there_is_room_or_none_would_be_enough() -> None:
    world = World(nodes=1)
    world.start("runs", gpus=4)
    world.submit("waits", gpus=4, priority=1)
    fits = find(world, {"runs": 0})
    world.submit("waits-too", gpus=4)

    assert fits
    assert fits.victims == ()

    full = World(nodes=1)
    full.start("runs")
    full.submit("waits")
    helpless = find(full, {"runs": 0})
    assert not helpless
    assert helpless.proven


def test_the_rack_decides() -> None:
    world = World(nodes=4, rack=2)
    started = {"a": 0, "b": 500, "c": 990, "d": 400}
    for name in started:
        world.start(name)
    world.submit("waits", pods=2, priority=1, topology=(topology_rule(),))

    assert names(find(world, started)) == ["c", "d"]


def test_what_counting_does_not_see_is_learned() -> None:
    world = World(nodes=3)
    started = {"a": 900, "b": 800, "c": 700}
    for name in started:
        world.start(name)
    apart = topology_rule("kubernetes.io/hostname", max_per_domain=1)
    world.submit("waits", pods=2, gpus=4, priority=1, topology=(apart,))

    found = find(world, started)

    assert names(found) == ["a", "b"]
    assert found.proven


def test_past_the_limit_an_answer_is_minimal_and_says_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(victims, "MOST_SETS", 0)
    world = World(nodes=3)
    started = {"a": 900, "b": 800, "c": 700}
    for name in started:
        world.start(name)
    world.submit("waits", pods=2, priority=1)

    found = find(world, started)

    assert len(found.victims) == 2
    assert not found.proven
    assert found.bound <= found.cost
