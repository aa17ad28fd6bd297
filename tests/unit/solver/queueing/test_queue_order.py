"""Whose queue is next, and who joins a batch."""

from __future__ import annotations

from contracts.features import Features
from solver.queueing.gang_queue import GangQueue, urgency_of
from solver.queueing.queue_order import QueueOrder
from solver.queueing.rounds import BatchLimits
from solver.snapshot.snapshot import Snapshot
from tests.builders import DEVICE_CLASS, devices, pool
from tests.builders.growing import asking
from tests.builders.problems import snapshot_of
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues


def world(*queues: tuple[str, int], cohort: str = "") -> Snapshot:
    """Three gangs of two devices in each namespace; queues by namespace and quota."""
    numbers = iter(range(1, 100))
    names = ["a", "b", "free"]
    wanted = [asking(next(numbers), 2, namespace=name) for name in names * 3]
    objects = [flavor("any")]
    for name, quota in queues:
        quotas = {"any": {DEVICE_CLASS: quota}}
        objects.append(cluster_queue(f"q-{name}", quotas, cohort=cohort))
        objects.append(local_queue(name, f"q-{name}"))
    nodes = {"n": [pool(*devices(8), name="n")]}
    return with_queues(snapshot_of(nodes, wanted), *objects)


def chosen(queue: GangQueue, snapshot: Snapshot, gangs: int = 256) -> list[str]:
    order = QueueOrder(snapshot, Features())
    limits = BatchLimits(gangs=gangs)
    batch = queue.choose(snapshot, limits, admits=order.takes, pick=order.pick)
    return [f"{record.namespace}{record.submission_sequence}" for record in batch]


def queue_of(snapshot: Snapshot) -> GangQueue:
    queue = GangQueue()
    for record in sorted(snapshot.waiting.values(), key=urgency_of):
        queue.follow(record)
    return queue


def test_who_borrows_comes_after_who_does_not() -> None:
    """Gangs without a queue borrow nothing; among equals the older is first."""
    snapshot = world(("a", 2), ("b", 8), cohort="all")
    assert chosen(queue_of(snapshot), snapshot) == [
        *("a1", "b2", "free3", "b5", "free6", "b8", "free9"),
        "a4",
    ]


def test_a_batch_has_of_a_queue_what_its_quota_has_left() -> None:
    """The next gang comes in another batch; nobody is refused for others' wishes."""
    snapshot = world(("a", 4))
    queue = queue_of(snapshot)
    assert sorted(chosen(queue, snapshot))[:2] == ["a1", "a4"]
    assert "a7" in chosen(queue, snapshot)
    assert chosen(queue, snapshot) == []


def test_a_queue_that_changes_lines_everybody_up_anew() -> None:
    """Whoever was set aside may have another turn."""
    snapshot = world(("a", 0))
    queue = queue_of(snapshot)
    while chosen(queue, snapshot):
        pass
    raised = with_queues(snapshot, local_queue("a", "q-other"))
    assert len(chosen(queue, raised)) == 3
