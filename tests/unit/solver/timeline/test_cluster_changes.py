"""The least quota and the earliest start that let a gang in."""

from __future__ import annotations

from contracts.messages import ExpectedStart
from solver.allocate import allocate
from solver.timeline.asking import answer_all
from solver.timeline.changes import SmallestChange
from solver.timeline.cluster_changes import ClusterChangeSearch
from solver.timeline.keeper import Outlook
from solver.timeline.patience import NEVER
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues
from tests.builders.timeline import World
from tests.builders.values import DEVICE_CLASS, NAMESPACE

NOW = 1000


def find(world: World) -> list[SmallestChange]:
    """Find changes for the gang `waits`."""
    waits = world["waits"]
    asker = world.asker(waits, *world.snapshot.promised.values())
    look = Outlook(
        snapshot=world.snapshot,
        now_s=NOW,
        asker_of=lambda _: asker,
        patience_s=NEVER,
    )
    search = ClusterChangeSearch(look, asker, waits)
    searches = search.searches()
    return [change for each in searches for change in answer_all(each, allocate)]


def with_quota(nodes: int, borrows: int | None = None) -> World:
    """Make a world in which a queue has 8 devices, and its cohort 16."""
    world = World(nodes)
    world.snapshot = with_queues(
        world.snapshot,
        flavor("any"),
        cluster_queue("q", {"any": {DEVICE_CLASS: (8, borrows, None)}}, cohort="c"),
        cluster_queue("other", {"any": {DEVICE_CLASS: 8}}, cohort="c"),
        local_queue(NAMESPACE, "q"),
    )
    return world


def test_the_quota_that_is_short_may_be_raised_or_borrowed() -> None:
    world = with_quota(nodes=2, borrows=0)
    world.start("runs")
    world.submit("waits", gpus=3)
    own, borrowed = find(world)
    assert (own.sort, own.helps, borrowed.helps) == ("quota", True, True)
    assert own.text == (
        f"ClusterQueue q has a quota of 11 instead of 8 {DEVICE_CLASS} of flavor any"
    )
    assert borrowed.text == (
        f"ClusterQueue q may borrow 3 instead of 0 {DEVICE_CLASS} of flavor any"
    )


def test_more_than_a_cohort_has_is_not_borrowed() -> None:
    world = with_quota(nodes=4)
    world.start("runs")
    world.submit("waits", pods=2)
    (own,) = find(world)
    assert [(each.amount, each.is_limit) for each in own.quotas] == [(16, False)]


def test_quota_alone_may_not_be_enough() -> None:
    world = with_quota(nodes=1, borrows=0)
    world.start("runs")
    world.submit("waits")
    assert [(each.sort, each.helps) for each in find(world)] == [("quota", False)] * 2


def test_who_has_quota_is_offered_none() -> None:
    world = with_quota(nodes=1)
    world.start("runs")
    world.submit("waits")
    assert find(world) == []


def test_a_gang_may_wait_until_others_have_ended() -> None:
    world = World(2)
    world.start("short", at_s=NOW, duration="1m")
    world.start("long", at_s=NOW, duration="1h")
    world.submit("waits", pods=2)
    (change,) = find(world)
    assert (change.sort, change.helps, change.proven) == ("wait", True, True)
    assert change.start_s == NOW + 3600
    assert change.text == "it waits until 1970-01-01 01:16:40 UTC"


def test_quota_comes_back_with_the_end_of_who_holds_it() -> None:
    world = with_quota(nodes=2, borrows=0)
    world.start("runs", at_s=NOW, duration="1h")
    world.submit("waits")
    assert find(world)[-1].start_s == NOW + 3600


def test_what_is_kept_for_others_is_left_alone() -> None:
    world = World(1)
    world.start("runs", at_s=NOW, duration="1h")
    world.wait_for("first", duration="30m")
    promise = ExpectedStart(
        time="1970-01-01T01:16:40Z", since="1970-01-01T00:00:01Z", proven=True
    )
    world.tell("first", promise)
    world.submit("waits")
    (change,) = find(world)
    assert change.start_s == NOW + 3600 + 1800


def test_nobody_knows_when_endless_gangs_end() -> None:
    world = World(1)
    world.start("runs")
    world.submit("waits", at_s=NOW)
    assert find(world) == []


def test_who_may_start_now_need_not_wait() -> None:
    world = World(1)
    world.submit("waits")
    assert find(world) == []
