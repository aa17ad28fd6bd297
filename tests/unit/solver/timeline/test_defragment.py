"""Which gangs are moved so that nodes are free, or another gang fits."""

from __future__ import annotations

import pytest

from solver.allocate import allocate
from solver.timeline import defragment
from solver.timeline.asking import answer_all
from solver.timeline.defragment import (
    FoundMoves,
    as_waiting,
    find_freeable,
    find_moves,
    list_movable,
    move,
)
from solver.timeline.futures import without_gangs
from tests.builders import member, member_claim, request, topology_rule
from tests.builders.timeline import World


def find(world: World, free_nodes: int = 0, waits: str = "") -> FoundMoves:
    records = list(map(as_waiting, list_movable(world.snapshot)))
    wants = world[waits] if waits else None
    asker = world.asker(*records, *([] if wants is None else [wants]))
    search = find_moves(world.snapshot, asker, free_nodes=free_nodes, wants=wants)
    return answer_all(search, allocate)


def steps(found: FoundMoves) -> list[tuple[str, list[str]]]:
    return [
        (step.record.name, [str(pod.node) for pod in step.members])
        for step in found.steps
    ]


def names(world: World) -> list[str]:
    return [each.name for each in list_movable(world.snapshot)]


@pytest.fixture
def halves() -> World:
    """Three nodes of eight devices, with four of each in use."""
    world = World(nodes=3)
    for name in "aabbcc":
        world.start(f"{name}-{len(world.snapshot.gangs)}", gpus=4)
    world.snapshot = without_gangs(
        world.snapshot, [world["a-1"], world["b-3"], world["c-5"]]
    )
    return world


def test_one_gang_moves_to_free_a_node(halves: World) -> None:
    found = find(halves, 1)
    ((name, _),) = steps(found)
    assert found.proven
    assert found.least == 1
    after = move(halves.snapshot, found.steps[0])
    (freed,) = found.nodes
    assert not find_freeable(after, list_movable(after))[freed]
    # Its own devices are free to others, and what it got is taken.
    assert {pod.node for pod in found.steps[0].members}.isdisjoint(found.nodes)
    assert name in {"a-0", "b-2", "c-4"}


def test_nobody_moves_where_nodes_are_free_or_nothing_helps(halves: World) -> None:
    impossible = find(halves, 2)
    assert not impossible.is_found
    assert impossible.proven
    halves.snapshot = without_gangs(halves.snapshot, [halves["a-0"], halves["b-2"]])
    free = find(halves, 2)
    assert free.is_found
    assert free.proven
    assert free.steps == ()
    assert len(free.nodes) == 2


def test_a_gang_is_let_in(halves: World) -> None:
    halves.submit("waits", gpus=8)
    found = find(halves, waits="waits")
    assert found.proven
    assert len(found.steps) == 1
    assert found.nodes == ()
    (pod,) = found.members
    placed = found.steps[0].record.placed
    assert placed is not None
    assert pod.node == placed.members[0].node


def test_what_is_too_large_for_the_fleet_is_not_looked_for(halves: World) -> None:
    halves.submit("waits", pods=2, gpus=8, topology=(topology_rule(),))
    found = find(halves, waits="waits")
    assert not found.is_found
    assert found.proven


def test_rules_that_no_counting_sees_are_learned() -> None:
    world = World(nodes=4, rack=2)
    for name in "abcd":
        world.start(name, gpus=8)
    world.snapshot = without_gangs(world.snapshot, [world["a"], world["c"]])
    world.submit("waits", pods=2, topology=(topology_rule(),))
    found = find(world, waits="waits")
    assert found.proven
    assert len(found.steps) == 1


def test_who_ends_or_may_grow_stays(halves: World) -> None:
    world = halves
    elastic = member(member_claim(request(count=2)), count=2, min_count=1)
    world.start_members("elastic", elastic)
    assert names(world) == ["a-0", "b-2", "c-4"]
    world.cancel("a-0")
    assert names(world) == ["b-2", "c-4"]
    placed = world["a-0"].placed
    assert placed is not None
    freeable = find_freeable(world.snapshot, list_movable(world.snapshot))
    assert placed.members[0].node not in freeable


def test_past_the_limit_an_answer_has_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(nodes=4, rack=2)
    for name in "abcd":
        world.start(name, gpus=8)
    world.snapshot = without_gangs(world.snapshot, [world["a"], world["c"]])
    world.submit("waits", pods=2, topology=(topology_rule(),))
    monkeypatch.setattr(defragment, "MOST_SETS", 1)

    found = find(world, waits="waits")
    assert found.is_found
    assert not found.proven
    assert (len(found.steps), found.least) == (1, 0)

    monkeypatch.setattr(defragment, "MOST_LARGER", 0)
    assert not find(world, waits="waits").is_found
