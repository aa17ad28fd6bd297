"""Who is asked about, in which order, and what is told of the answers."""

from __future__ import annotations

from contracts.allocation import Reason, Rule
from contracts.lifecycle import GangRecord
from contracts.messages import ReleaseOutcome
from solver.allocate import allocate
from solver.service.messages import make_release
from solver.snapshot.snapshot import apply
from solver.timeline.asking import answer_all
from solver.timeline.lacking import AFTER_S, AGAIN_S, MOST_GANGS, REST_S, Lacking
from tests.builders.problems import CLUSTER
from tests.builders.timeline import World

NOW = 1_000


def full(*names: str) -> World:
    """Make a full node, and gangs that wait for another."""
    world = World(1)
    world.start("runs")
    for name in names:
        world.wait_for(name, at_s=NOW)
    return world


def ask(lacking: Lacking, world: World, record: GangRecord, now_s: int) -> None:
    asker = world.asker(record)
    answer_all(lacking.ask(asker, world.snapshot, record, now_s), allocate)


def test_who_waits_is_asked_about_once_in_a_while() -> None:
    world, lacking = full("a", "b"), Lacking()
    assert lacking.choose(world.snapshot, NOW + AFTER_S - 1) is None
    now_s = NOW + AFTER_S
    chosen = [lacking.choose(world.snapshot, now_s) for _ in range(3)]
    assert [each and each.name for each in chosen] == ["a", "b", None]
    later = lacking.choose(world.snapshot, now_s + AGAIN_S)
    assert later is not None
    assert later.name == "a"


def test_what_is_lacking_is_news_until_it_was_told() -> None:
    world, lacking, now_s = full("a", "b"), Lacking(), NOW + AFTER_S
    ask(lacking, world, world["a"], now_s)
    ((record, lacks),) = lacking.list_news(world.snapshot)
    assert record.name == "a"
    assert [each.count for each in lacks] == [1]
    world.tell("a", None, lacks)
    assert world["a"].lacks == lacks
    assert not list(lacking.list_news(world.snapshot))


def test_another_leader_lets_stand_what_was_told_until_it_knows_better() -> None:
    world, now_s = full("a"), NOW + AFTER_S
    before = Lacking()
    ask(before, world, world["a"], now_s)
    ((_, lacks),) = before.list_news(world.snapshot)
    world.tell("a", None, lacks)
    lacking = Lacking()
    assert not list(lacking.list_news(world.snapshot))
    ended = make_release(
        world["runs"], ReleaseOutcome.COMPLETED, cluster=CLUSTER, epoch=1
    )
    world.snapshot = apply(world.snapshot, ended, sequence=99)
    ask(lacking, world, world["a"], now_s)
    assert [new for _, new in lacking.list_news(world.snapshot)] == [()]


def test_only_the_most_urgent_are_asked_about() -> None:
    names = [f"g{number:03}" for number in range(MOST_GANGS + 1)]
    world, lacking, now_s = full(*names), Lacking(), NOW + AFTER_S
    chosen = []
    while record := lacking.choose(world.snapshot, now_s):
        chosen.append(record.name)
    assert chosen == names[:MOST_GANGS]


def test_who_waits_for_quota_now_is_told_that_nothing_is_lacking() -> None:
    world, lacking, now_s = full("a"), Lacking(), NOW + AFTER_S
    ask(lacking, world, world["a"], now_s)
    ((_, lacks),) = lacking.list_news(world.snapshot)
    world.tell("a", None, lacks, (Reason(rule=Rule.QUOTA),))
    assert lacking.choose(world.snapshot, now_s) is None
    assert [new for _, new in lacking.list_news(world.snapshot)] == [()]


def test_who_cannot_be_asked_about_is_left_alone_for_longer() -> None:
    world, lacking, now_s = full("a"), Lacking(), NOW + AFTER_S
    chosen = lacking.choose(world.snapshot, now_s)
    assert chosen is not None
    lacking.rest(chosen.key, now_s)
    assert lacking.choose(world.snapshot, now_s + REST_S) is None
    assert lacking.choose(world.snapshot, now_s + REST_S + AGAIN_S) is not None
