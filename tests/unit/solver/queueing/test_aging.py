"""A gang that waits for long gains priority, where its queue says so."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.gang import Gang
from contracts.ids import GangKey
from solver.queueing.aging import AGING, Aging, list_aged, read_aging
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import BatchLimits
from solver.snapshot.snapshot import GangAged, Snapshot, apply
from tests.builders import DEVICE_CLASS, devices, pool
from tests.builders.growing import asking, end, key
from tests.builders.problems import problem_of, snapshot_of
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues
from tests.builders.solving import Solving

HOUR_S = 3600.0
SINCE_S = 1000.0


@pytest.mark.parametrize(
    ("text", "aging"),
    [
        ("1h/10", Aging(step_s=3600, most=10)),
        ("90s/1", Aging(step_s=90, most=1)),
        ("1h30m/1000", Aging(step_s=5400, most=1000)),
    ],
)
def test_it_is_a_time_and_a_number_of_steps(text: str, aging: Aging) -> None:
    assert read_aging(text) == aging


@pytest.mark.parametrize(
    "text", ["", "1h", "1h/", "/10", "0s/10", "1h/0", "1h/1001", "1h/-1", "1h/1/2", "x"]
)
def test_what_says_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        read_aging(text)


@pytest.mark.parametrize(
    ("waited_s", "steps"),
    [(-5.0, 0), (0.0, 0), (3599.9, 0), (3600.0, 1), (7300.0, 2), (1e9, 3)],
)
def test_steps_are_whole_and_few(waited_s: float, steps: int) -> None:
    assert Aging(step_s=3600, most=3).count_steps(waited_s) == steps


def world(said: str | None, *gangs: Gang) -> Snapshot:
    """Gangs that wait in a queue for three devices, an hour between each two."""
    queue = cluster_queue("q", {"any": {DEVICE_CLASS: 3}})
    if said is not None:
        queue["metadata"]["annotations"] = {AGING: said}
    snapshot = with_queues(
        snapshot_of({"n": [pool(*devices(3), name="n")]}, gangs),
        flavor("any"),
        queue,
        local_queue("default", "q"),
    )
    for number, record in enumerate(
        sorted(snapshot.waiting.values(), key=lambda each: each.submission_sequence)
    ):
        since_s = SINCE_S + number * HOUR_S
        dated = structs.replace(record, waits_since_s=since_s)
        snapshot = structs.replace(
            snapshot,
            gangs=snapshot.gangs.with_item(record.key, dated),
            waiting=snapshot.waiting.with_item(record.key, dated),
        )
    return snapshot


def aged(snapshot: Snapshot, now_s: float) -> Snapshot:
    """Let gangs have the priority of their age."""
    for message in list_aged(snapshot, now_s):
        snapshot = apply(snapshot, message)
    return snapshot


def order_of(snapshot: Snapshot) -> list[GangKey]:
    """Return the order in which gangs are tried."""
    queue = GangQueue()
    for record in snapshot.waiting.values():
        queue.follow(record)
    return [each.key for each in queue.choose(snapshot, BatchLimits())]


OLD, URGENT = asking(1, 3), asking(2, 3, priority=2)


def test_the_old_come_before_the_urgent_in_time() -> None:
    """After two steps more than the other has; no earlier, and no later."""
    snapshot = world("30m/4", OLD, URGENT)
    now_s = SINCE_S + 1.4 * HOUR_S
    assert list_aged(snapshot, now_s) == [GangAged(gang=key(1), steps=2)]
    assert order_of(aged(snapshot, now_s)) == [key(1), key(2)]
    now_s = SINCE_S + 1.5 * HOUR_S
    assert {m.gang: m.steps for m in list_aged(snapshot, now_s)} == {
        key(1): 3,
        key(2): 1,
    }
    assert order_of(aged(snapshot, now_s)) == [key(1), key(2)]
    assert order_of(aged(snapshot, SINCE_S + 0.9 * HOUR_S)) == [key(2), key(1)]
    assert order_of(aged(snapshot, SINCE_S + 9 * HOUR_S)) == [key(2), key(1)]


@pytest.mark.parametrize("said", [None, "often", "1h"])
def test_without_aging_nobody_gains_anything(said: str | None) -> None:
    assert list_aged(world(said, OLD, URGENT), 1e9) == []


def test_what_was_gained_is_lost_with_the_annotation() -> None:
    snapshot = aged(world("30m/4", OLD, URGENT), 1e9)
    queue = cluster_queue("q", {"any": {DEVICE_CLASS: 3}})
    assert {m.steps for m in list_aged(with_queues(snapshot, queue), 1e9)} == {0}


def test_who_waits_without_a_date_has_no_age() -> None:
    queue = cluster_queue("q", {})
    queue["metadata"]["annotations"] = {AGING: "1s/9"}
    waits = snapshot_of({}, (OLD,))
    snapshot = with_queues(waits, queue, local_queue("default", "q"))
    assert list_aged(snapshot, 1e9) == []


def test_age_is_recorded_with_what_is_asked() -> None:
    """So that the answer follows from that alone."""
    snapshot = aged(world("30m/4", OLD, URGENT), SINCE_S + 1.5 * HOUR_S)
    problem = problem_of(snapshot)
    assert {g.key: (g.priority, g.aged) for g in problem.gangs} == {
        key(1): (3, 3),
        key(2): (3, 1),
    }
    assert b'"aged":3' in problem.data
    assert b'"aged"' not in problem_of(world(None, OLD, URGENT)).data


def test_a_gang_that_was_tried_in_vain_is_tried_again_with_its_age() -> None:
    """And comes before one that is more urgent by its author."""
    later = asking(3, 3, priority=2)
    solving = Solving(world("30m/4", OLD, URGENT, later))
    solving.decide()
    assert solving.counts((key(1), key(2), key(3))) == [0, 3, 0]
    solving.hear(GangAged(gang=key(1), steps=3))
    end(solving, 2)
    solving.decide()
    assert solving.counts((key(1), key(3))) == [3, 0]


def test_a_gang_that_rests_goes_on_resting() -> None:
    snapshot = world("30m/4", OLD)
    queue = GangQueue()
    (young,) = snapshot.waiting.values()
    queue.follow_queues(snapshot)
    queue.follow(young)
    queue.rest(key(1), 100.0)
    older = aged(snapshot, 1e9)
    (record,) = older.waiting.values()
    queue.note_age(record)
    assert queue.choose(older, BatchLimits(), now=99.0) == ()
    assert queue.choose(older, BatchLimits(), now=100.0) == (record,)
