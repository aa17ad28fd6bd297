"""Priority by age: the order of a batch against one that is written from the docs."""

from __future__ import annotations

import random

import pytest
from msgspec import structs

from solver.queueing.aging import AGING, list_aged
from solver.queueing.gang_queue import GangQueue, choose_batch
from solver.queueing.rounds import BatchLimits
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders.growing import asking
from tests.builders.problems import snapshot_of
from tests.builders.queues import cluster_queue, local_queue, with_queues
from tests.lab.soak import sized

QUEUES = ("a", "b", "c")
STEPS_S = {"a": (600, 3), "b": (3600, 10), "c": None}
WAITS = tuple[str, int, int, float]
"""A gang that waits: its queue, its priority, its number, and since when."""


def order_by_hand(gangs: list[WAITS], now_s: float) -> list[int]:
    """Sort by the priority that authors gave and a step each so much time, then age."""

    def urgency(waits: WAITS) -> tuple[int, int]:
        queue, priority, number, since_s = waits
        gained, said = 0, STEPS_S[queue]
        if said is not None:
            step_s, most = said
            while gained < most and now_s - since_s >= (gained + 1) * step_s:
                gained += 1
        return -(priority + gained), number

    return [waits[2] for waits in sorted(gangs, key=urgency)]


def world(gangs: list[WAITS]) -> Snapshot:
    """Let gangs wait, each in the queue of its namespace."""
    snapshot = snapshot_of(
        {}, [asking(n, 1, namespace=queue, priority=p) for queue, p, n, _ in gangs]
    )
    for name in QUEUES:
        queue, said = cluster_queue(name, {}), STEPS_S[name]
        if said is not None:
            queue["metadata"]["annotations"] = {AGING: f"{said[0]}s/{said[1]}"}
        snapshot = with_queues(snapshot, queue, local_queue(name, name))
    records = sorted(
        snapshot.waiting.values(), key=lambda record: record.submission_sequence
    )
    for record, (*_, since_s) in zip(records, gangs, strict=True):
        dated = structs.replace(record, waits_since_s=since_s)
        snapshot = structs.replace(
            snapshot,
            gangs=snapshot.gangs.with_item(record.key, dated),
            waiting=snapshot.waiting.with_item(record.key, dated),
        )
    return snapshot


@pytest.mark.parametrize("part", range(4))
def test_gangs_are_tried_in_the_order_of_priority_with_age(part: int) -> None:
    """At several times of one world, as the queue follows what is gained."""
    drawn = random.Random(part)
    for _ in range(sized(25, 500)):
        gangs: list[WAITS] = []
        since_s = 1000.0
        for number in range(1, drawn.randint(2, 8)):
            since_s += drawn.choice((0, 60, 600, 1800, 7200))
            queue, priority = drawn.choice(QUEUES), drawn.randint(-1, 3)
            gangs.append((queue, priority, number, since_s))
        snapshot, followed = world(gangs), GangQueue()
        followed.follow_queues(snapshot)
        now_s = since_s
        for _ in range(4):
            for message in list_aged(snapshot, now_s):
                snapshot = apply(snapshot, message)
                record = snapshot.waiting.get(message.gang)
                assert record is not None
                followed.note_age(record)
            wanted = order_by_hand(gangs, now_s)
            limits = BatchLimits()
            for batch in (
                choose_batch(snapshot, limits),
                followed.choose(snapshot, limits),
            ):
                numbers = [int(record.uid[-12:]) for record in batch]
                assert numbers == wanted, (gangs, now_s)
            followed.retry(record.key for record in snapshot.waiting.values())
            now_s += drawn.choice((300, 600, 3600, 86_400))
