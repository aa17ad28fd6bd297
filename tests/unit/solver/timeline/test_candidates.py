"""Who may have to end, and the order of what that costs."""

from __future__ import annotations

from msgspec import structs

from contracts.messages import ReleaseGang
from solver.snapshot.snapshot import apply
from solver.timeline.candidates import NOBODY, Candidate, cost_of, may_end
from tests.builders.problems import CLUSTER
from tests.builders.timeline import World


def test_only_gangs_of_lower_priority_with_a_place_may_end() -> None:
    world = World(nodes=3)
    low, equal = world.start("low"), world.start("equal", priority=1)
    waits = world.submit("waits", priority=1)
    idle = world.submit("idle", pods=9)

    assert may_end(low, waits)
    assert not may_end(equal, waits)
    assert not may_end(equal, structs.replace(waits, aged=9))
    assert not may_end(idle, waits)


def test_a_gang_that_is_ending_is_no_victim() -> None:
    world = World(nodes=1)
    low, waits = world.start("low"), world.submit("waits", priority=1)
    ends = ReleaseGang(cluster=CLUSTER, namespace=low.namespace, uid=low.uid)
    world.snapshot = apply(world.snapshot, ends, sequence=1)

    assert may_end(low, waits)
    assert not may_end(world["low"], waits)


def test_work_since_the_last_checkpoint_is_lost() -> None:
    record = World(nodes=1, gpus=4).start("runs", gpus=4)
    runs = Candidate(record=record, started_s=10)
    saved = structs.replace(runs, checkpointed_s=90.5)

    assert runs.devices == 4
    assert runs.lost_s(100) == 4 * 90
    assert saved.lost_s(100) == 4 * 9
    assert saved.lost_s(50) == 0


def test_the_first_difference_decides() -> None:
    world = World(nodes=4)
    first = Candidate(record=world.start("first"), started_s=100)
    second = Candidate(record=world.start("second"), started_s=100)
    young = structs.replace(second, started_s=200)
    urgent = Candidate(record=world.start("urgent", priority=1), started_s=300)

    assert cost_of([], 300).priority == NOBODY
    assert cost_of([first, second], 300) < cost_of([urgent], 300)
    assert cost_of([young], 300) < cost_of([first], 300)
    assert cost_of([first], 100) < cost_of([second], 100)
    assert cost_of([first], 100) < cost_of([first, second], 100)
