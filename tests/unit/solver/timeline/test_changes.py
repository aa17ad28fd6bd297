"""The smallest changes that let a gang in."""

from __future__ import annotations

from typing import Any

from solver.allocate import allocate
from solver.timeline.asking import answer_all
from solver.timeline.candidates import Candidate, may_end
from solver.timeline.changes import ChangeSearch, SmallestChange, count_sick
from solver.timeline.holdings import read_holding
from tests.builders import topology_rule
from tests.builders.timeline import World


def find(world: World, *running: str) -> dict[str, SmallestChange]:
    """Find changes for the gang `waits`, by sort."""
    waits = world["waits"]
    problem = world.asker(waits).question(world.snapshot, waits)
    runs = [Candidate(record=world[name], started_s=0) for name in running]
    search = ChangeSearch(
        problem,
        waits.key,
        [each for each in runs if may_end(each.record, waits)],
        {each.record.key: read_holding(world.snapshot, each.record) for each in runs},
        now_s=0,
    )
    found = [answer_all(asking, allocate) for asking in search.searches()]
    return {change.sort: change for changes in found for change in changes}


def wait(nodes: int, pods: int, **spec: Any) -> World:
    world = World(nodes, rack=4)
    world.submit("waits", pods=pods, **spec)
    return world


def test_nine_pods_on_eight_nodes_are_one_too_many() -> None:
    found = find(wait(8, pods=9))

    assert set(found) == {"nodes", "fewer"}
    assert found["nodes"].text == "1 more node like n-0"
    assert found["nodes"].helps
    assert found["fewer"].text == "8 pods of member worker instead of 9"
    assert found["fewer"].pods == {"worker": 8}


def test_one_topology_entry_may_be_all_that_is_in_the_way() -> None:
    found = find(wait(8, pods=5, topology=(topology_rule(),)))

    assert found["relax"].helps
    assert found["relax"].without == "topology/0"
    assert found["nodes"].nodes == 1
    assert found["fewer"].pods == {"worker": 4}


def test_gangs_of_lower_priority_may_end() -> None:
    world = World(nodes=4)
    names = ("a", "b", "c", "d")
    for name in names:
        world.start(name, priority=5 if name == "d" else 0)
    world.submit("waits", pods=2, priority=5)
    found = find(world, *names)

    assert found["end"].helps
    assert len(found["end"].end) == 2
    assert found["end"].text == "gangs team-a/a and team-a/b end (they hold 16 devices)"
    assert found["nodes"].nodes == 2


def test_who_would_not_help_is_said_too() -> None:
    world = World(nodes=2)
    world.start("low")
    world.start("equal", priority=5)
    world.submit("waits", pods=2, priority=5)

    found = find(world, "low", "equal")

    assert not found["end"].helps
    assert found["end"].text == "all gangs of lower priority end"
    assert not found["fewer"].helps


def test_a_gang_that_no_node_could_hold_has_no_model() -> None:
    found = find(wait(2, pods=1, gpus=9))
    assert found == {}


def test_healthy_clusters_have_nothing_sick() -> None:
    world = wait(1, pods=2)
    problem = world.asker(world["waits"]).question(world.snapshot, world["waits"])
    assert count_sick(problem) == ""


def lack(world: World) -> list[str]:
    """Find which nodes the gang `waits` lacks, as they are told."""
    waits = world["waits"]
    problem = world.asker(waits).question(world.snapshot, waits)
    running = world.snapshot.placed.values()
    held = {each.key: read_holding(world.snapshot, each) for each in running}
    search = ChangeSearch(problem, waits.key, (), held, now_s=0)
    return [str(each) for each in answer_all(search.find_lacking(), allocate)]


def test_what_it_lacks_is_the_fewest_nodes_of_a_shape_that_there_is() -> None:
    world = World(4)
    world.start("runs", pods=3)
    world.submit("waits", pods=3)
    shape = "8 devices of gpu.example.com"
    assert lack(world) == [f"2 more nodes like n-0 ({shape})"]


def test_who_has_a_place_lacks_nothing() -> None:
    assert lack(wait(2, pods=2)) == []


def test_pods_that_no_node_could_hold_are_described() -> None:
    (text,) = lack(wait(2, pods=3, gpus=9))
    assert text == (
        "3 nodes, or fewer, for the pods of member worker, each with "
        "9 devices of gpu.example.com: no node here could hold one"
    )
    assert lack(wait(2, pods=1, gpus=9))[0].startswith("1 node for a pod of member")
