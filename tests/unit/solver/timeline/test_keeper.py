"""Who gets a reservation, whether it still holds, and when it moves."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.messages import ExpectedStart
from solver.allocate import allocate
from solver.timeline.asking import answer_all
from solver.timeline.futures import with_gang, without_gangs
from solver.timeline.keeper import MOST_LATE_S, Book, Outlook, keep_book
from solver.timeline.patience import NEVER
from tests.builders.timeline import World

NOW = 1000


def keep(
    world: World, book: Book | None = None, now_s: int = NOW, patience_s: int = 0
) -> Book:
    look = look_at(world, now_s, patience_s)
    return answer_all(keep_book(book or Book(), look), allocate)


def look_at(world: World, now_s: int = NOW, patience_s: int = 0) -> Outlook:
    return Outlook(
        snapshot=world.snapshot,
        now_s=now_s,
        asker_of=world.asker,
        patience_s=patience_s,
    )


def starts_of(book: Book) -> dict[str, int | None]:
    return {each.record.name: each.start_s for each in book.kept}


def test_the_first_of_each_namespace_that_waited_long_gets_one() -> None:
    world = World(nodes=2)
    world.start("runs", pods=2, at_s=NOW, duration="1h")
    world.wait_for("old", at_s=NOW - 100, duration="1h")
    world.wait_for("urgent", at_s=NOW - 50, priority=1, duration="1h")
    world.wait_for("new", at_s=NOW - 1, priority=2)
    world.wait_for("other", at_s=NOW - 60, namespace="team-b", duration="1h")
    world.submit("untried", namespace="team-c")

    book = keep(world, patience_s=50)
    assert starts_of(book) == {"urgent": NOW + 3600, "other": NOW + 3600}
    assert not keep(world, patience_s=NEVER).kept
    assert keep(world, book, patience_s=50) == book
    with pytest.raises(StopIteration):  # what holds is judged, not asked for again
        next(keep_book(book, look_at(world, patience_s=50)))


def test_a_start_moves_later_only_for_a_reason() -> None:
    world = World(nodes=2)
    world.start("short", at_s=NOW, duration="10m")
    world.start("long", at_s=NOW, duration="1h")
    world.wait_for("waits", at_s=0, duration="1h")
    book = keep(world)
    assert starts_of(book) == {"waits": NOW + 600}

    overrun = keep(world, book, now_s=NOW + 700)
    assert starts_of(overrun) == {"waits": NOW + 700}
    ((was, why),) = overrun.late
    assert was.start_s == NOW + 600
    assert why == "short runs for longer than its duration"
    told = keep(world, overrun, now_s=NOW + 705)
    assert (starts_of(told), told.late) == ({"waits": NOW + 700}, ())
    later_s = NOW + 700 + MOST_LATE_S
    still = keep(world, told, now_s=later_s)
    assert starts_of(still) == {"waits": later_s}
    assert [why for _, why in still.late] == [why]
    world.remove("n-0")
    world.remove("n-1")
    lost = keep(world, book)
    assert not lost.kept
    assert [why for _, why in lost.late] == [
        "its devices or nodes cannot be used any more"
    ]


def test_what_is_kept_goes_to_other_devices_before_it_moves_later() -> None:
    world = World(nodes=3)
    world.start("a", at_s=NOW, duration="10m")
    world.start("b", at_s=NOW, duration="10m")
    world.start("c", at_s=NOW, duration="1h")
    waits = world.wait_for("waits", at_s=0, duration="1h")
    book = keep(world)
    (kept,) = book.kept
    (pod,) = kept.members

    world.remove(pod.node)
    moved = keep(world, book)
    assert starts_of(moved) == starts_of(book)
    assert not moved.late
    assert moved.find(waits) != kept


def test_a_gang_that_began_or_went_keeps_nothing() -> None:
    world = World(nodes=1)
    runs = world.start("runs", at_s=NOW, duration="10m")
    waits = world.wait_for("waits", at_s=0)
    book = keep(world)
    assert book.find(waits) is not None

    world.snapshot = without_gangs(world.snapshot, [runs])
    assert book.find(waits)
    world.snapshot = with_gang(world.snapshot, waits, book.kept[0].members)
    assert keep(world, book) == Book()


def test_what_another_solver_promised_is_kept() -> None:
    world = World(nodes=2)
    world.start("short", at_s=NOW, duration="10m")
    world.start("long", at_s=NOW, duration="1h")
    world.wait_for("second", at_s=1, duration="1h")
    world.wait_for("first", at_s=2, duration="1h", namespace="team-b")
    for name, start, since in (("first", "26", "01"), ("second", "26", "02")):
        told = ExpectedStart(
            time=f"1970-01-01T00:{start}:40Z", since=f"1970-01-01T00:00:{since}Z"
        )
        world.tell(name, told)

    book = keep(world, patience_s=NEVER)
    assert starts_of(book) == {"first": NOW + 600, "second": NOW + 3600}
    assert [was.record.name for was, _ in book.late] == ["second"]
    assert [each.since_s for each in book.kept] == [1, 2]


def test_a_start_moves_earlier_once_somebody_in_its_way_has_ended() -> None:
    world = World(nodes=2)
    blocks = world.start("blocks", at_s=NOW, duration="1h")
    short = world.start("short", at_s=NOW, duration="10m")
    world.wait_for("waits", at_s=0, pods=2, duration="1h")
    book = keep(world)
    assert starts_of(book) == {"waits": NOW + 3600}

    full = world.snapshot
    world.snapshot = without_gangs(full, [short])
    assert keep(world, book) == structs.replace(
        book, beyond={key: frozenset({blocks.key}) for key in book.beyond}
    )
    world.snapshot = without_gangs(full, [blocks])
    earlier = keep(world, book)
    assert starts_of(earlier) == {"waits": NOW + 600}
    assert not earlier.late
    assert earlier.kept[0].since_s == book.kept[0].since_s
