"""Who may have to end, and the order of what that costs."""

from __future__ import annotations

from msgspec import structs

from contracts.lifecycle import GangRecord
from contracts.messages import ReleaseGang
from contracts.names import CHECKPOINTED, GANG_UID
from solver.snapshot.snapshot import apply
from solver.timeline.candidates import (
    NOBODY,
    Candidate,
    cost_of,
    make_candidate,
    may_end,
)
from tests.builders.gangs import pod
from tests.builders.problems import CLUSTER, observe_core
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


def test_the_last_pod_that_says_so_tells_when_its_gang_saved_its_work() -> None:
    world = World(nodes=2)
    world.start("runs", pods=2, at_s=1_000)
    record = world.run("runs")
    assert make_candidate(world.snapshot, record).checkpointed_s is None
    save(world, record, 0, "1970-01-01T00:30:00Z")
    world.snapshot = world.snapshot.without_grown()
    save(world, record, 1, "1970-01-01T00:40:00Z")
    # That wakes nobody: no room came of it.
    assert not world.snapshot.grown
    candidate = make_candidate(world.snapshot, record)
    assert (candidate.started_s, candidate.checkpointed_s) == (1_000, 2_400)
    for number in range(2):
        save(world, record, number, "1970-01-01T00:00:09Z")
    assert make_candidate(world.snapshot, record).checkpointed_s is None


def save(world: World, record: GangRecord, number: int, said: str) -> None:
    """Let a pod of a gang say when it saved its work."""
    assert record.placed is not None
    placed = record.placed.members[number]
    made = pod(
        f"{record.name}-{placed.member}-{placed.index}",
        annotations={GANG_UID: record.uid, CHECKPOINTED: said},
        requests={"cpu": 0},
        node_name=placed.node,
        phase="Running",
    )
    world.snapshot = observe_core(world.snapshot, made)


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
