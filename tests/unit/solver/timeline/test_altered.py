"""A Problem as it would be."""

from __future__ import annotations

from contracts.ids import NodeName
from solver.allocate import allocate
from solver.problem.problem import Problem
from solver.snapshot.parts import NodePart
from solver.timeline.altered import (
    healed,
    with_ended,
    with_gang,
    with_nodes,
    with_pods,
)
from solver.timeline.futures import without_gangs
from solver.timeline.holdings import read_holding
from tests.builders import member, member_claim, request
from tests.builders.timeline import World


def question(world: World, name: str) -> Problem:
    return world.asker(world[name]).question(world.snapshot, world[name])


def fits(problem: Problem) -> bool:
    return not allocate(problem).gangs[0].reasons


def test_what_ended_is_as_if_it_had_never_been() -> None:
    world = World(nodes=2)
    runs = world.start("runs", pods=2, gpus=6, cpu=8)
    waits = world.submit("waits", pods=2)
    held = read_holding(world.snapshot, runs)

    later = without_gangs(world.snapshot, [runs])
    asked = world.asker(waits).question(later, waits)

    assert with_ended(question(world, "waits"), [held]).hash == asked.hash


def test_shares_end_with_their_gang() -> None:
    world = World(2, 1, capacity={"m": 10}, allow_multiple_allocations=True)
    share = member(member_claim(request(capacity={"m": 3})), count=2)
    runs = [world.start_members(name, share) for name in "abc"]
    waits = world.submit_members("waits", share)
    held = [read_holding(world.snapshot, each) for each in runs]
    problem = question(world, "waits")
    asker = world.asker(waits)

    for ended in ([0], [0, 1], [0, 1, 2]):
        later = without_gangs(world.snapshot, [runs[number] for number in ended])
        changed = with_ended(problem, [held[number] for number in ended])
        assert changed.hash == asker.question(later, waits).hash
    assert not held[0].devices
    assert sum(sum(of.values()) for of in held[0].shares.values()) == 6 * 10**9


def test_added_nodes_have_nothing_in_use() -> None:
    world = World(nodes=1)
    world.start("runs", gpus=8, cpu=60)
    world.submit("waits", pods=2, cpu=60)
    problem = question(world, "waits")
    used = {"cpu": 60_000, "pods": 1}

    added = with_nodes(problem, NodeName("n-0"), 2, used)

    assert not fits(with_nodes(problem, NodeName("n-0"), 1, used))
    assert not fits(with_nodes(problem, NodeName("n-0"), 2, {}))
    assert fits(added)
    nodes = [part.value for page in added.pages for part in page.parts()]
    assert sum(isinstance(value, NodePart) for value in nodes) == 3
    assert with_nodes(problem, NodeName("nowhere"), 1, {}) is problem


def test_healthy_clusters_stay_as_they_are() -> None:
    world = World(nodes=1)
    world.submit("waits")
    problem = question(world, "waits")
    assert healed(problem).hash == problem.hash


def test_another_number_of_pods_is_asked_for() -> None:
    world = World(nodes=1)
    world.submit("waits", pods=3)
    problem = question(world, "waits")
    (gang,) = problem.gangs

    assert not fits(problem)
    assert fits(with_gang(problem, with_pods(gang, {"worker": 1})))
    assert with_pods(gang, {"other": 1}) == gang
