"""Who is first in a queue, and StrictFIFO."""

from __future__ import annotations

from contracts.ids import GangKey, GangUID, Namespace
from solver.queueing.strict import QueueLines
from solver.queueing.turns import Ticket
from solver.snapshot.snapshot import Snapshot
from tests.builders import DEVICE_CLASS, devices, pool
from tests.builders.growing import asking, end, key
from tests.builders.problems import snapshot_of
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues
from tests.builders.solving import Solving


def ticket(name: str, age: int, priority: int = 0, queue: str = "q") -> Ticket:
    gang = GangKey(Namespace("default"), GangUID(name))
    return Ticket(gang=gang, priority=priority, age=age, pods=1, queue=queue)


def test_the_urgent_come_first_then_the_old() -> None:
    """Of their queue; who has none is in nobody's way."""
    lines = QueueLines()
    old, young, urgent = ticket("old", 1), ticket("young", 2), ticket("urgent", 3, 1)
    alone = ticket("alone", 0, queue="")
    for each in (young, urgent, old, alone):
        lines.put(each)
    assert [lines.count_before(t.gang) for t in (urgent, old, young)] == [0, 1, 2]
    assert lines.is_first(urgent.gang)
    assert [lines.count_above(t) for t in (urgent, old, young)] == [0, 1, 1]
    assert (lines.count("q"), lines.count("other")) == (3, 0)
    assert lines.list_before(young.gang, 9) == [urgent.gang, old.gang]
    assert lines.list_before(young.gang, 1) == [urgent.gang]
    assert lines.list_before(alone.gang, 9) == []
    assert lines.is_first(alone.gang)
    lines.remove(urgent.gang)
    assert lines.is_first(old.gang)
    assert (lines.queue_of(old.gang), lines.queue_of(urgent.gang)) == ("q", "")


def world(strategy: str) -> Snapshot:
    """Two devices of three are left by a quota; the first gang wants three."""
    wanted = (asking(1, 3), asking(2, 1), asking(3, 1))
    nodes = {"n": [pool(*devices(3), name="n")]}
    quotas = {"any": {DEVICE_CLASS: 2}}
    return with_queues(
        snapshot_of(nodes, wanted),
        flavor("any"),
        cluster_queue("q", quotas, queueingStrategy=strategy),
        local_queue("default", "q"),
    )


def test_in_a_strict_queue_nobody_is_tried_before_who_is_first() -> None:
    """However little it asks for, until the first one is gone."""
    solving = Solving(world("StrictFIFO"))
    solving.decide()
    assert solving.counts(map(key, (1, 2, 3))) == [0, 0, 0]
    end(solving, 1)
    solving.decide()
    assert solving.counts(map(key, (2, 3))) == [1, 1]


def test_who_is_not_let_in_is_in_nobody_s_way() -> None:
    """A stopped LocalQueue stops its own gangs."""
    stopped = local_queue("default", "q")
    stopped["spec"]["stopPolicy"] = "Hold"
    other = asking(4, 1, namespace="other")
    nodes = {"n": [pool(*devices(3), name="n")]}
    quotas = {"any": {DEVICE_CLASS: 2}}
    snapshot = with_queues(
        snapshot_of(nodes, [asking(1, 1), other]),
        flavor("any"),
        cluster_queue("q", quotas, queueingStrategy="StrictFIFO"),
        stopped,
        local_queue("other", "q"),
    )
    solving = Solving(snapshot)
    solving.decide()
    assert solving.counts([key(1), key(4, "other")]) == [0, 1]


def test_elsewhere_others_go_ahead() -> None:
    """As the default strategy has it."""
    solving = Solving(world("BestEffortFIFO"))
    solving.decide()
    assert solving.counts(map(key, (1, 2, 3))) == [0, 1, 1]
