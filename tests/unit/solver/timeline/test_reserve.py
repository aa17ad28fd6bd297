"""The earliest start of a gang that waits."""

from __future__ import annotations

from solver.allocate import allocate
from solver.timeline.asking import answer_all
from solver.timeline.reserve import Reservation, Scene, reserve
from solver.timeline.runs import list_runs
from solver.timeline.timetable import Timetable
from tests.builders.timeline import World

NOW = 1000


def reserve_for(
    world: World, name: str, *kept: Reservation, now_s: int = NOW
) -> Reservation | None:
    record = world[name]
    scene = Scene(table=Timetable(world.snapshot, now_s), kept=kept)
    asking = reserve(world.asker(record), scene, record)
    return answer_all(asking, allocate)


def test_a_gang_starts_once_enough_others_have_ended() -> None:
    world = World(nodes=3)
    world.start("short", at_s=NOW, duration="1m")
    world.start("middle", at_s=NOW, duration="1h")
    world.start("long", at_s=NOW, duration="2h")
    world.submit("large", pods=2)

    kept = reserve_for(world, "large")

    assert kept is not None
    assert (kept.start_s, kept.until_s, kept.proven) == (NOW + 3600, None, True)
    assert [gang.uid for gang in kept.after] == ["short", "middle"]
    assert len(kept.members) == 2


def test_what_is_kept_for_another_is_not_free() -> None:
    world = World(nodes=2)
    world.start("short", at_s=NOW, duration="1m")
    world.start("long", at_s=NOW, duration="1h")
    world.submit("first", duration="30m")
    world.submit("second", duration="5m")
    world.submit("third", duration="5m")

    first = reserve_for(world, "first")
    assert first is not None
    assert first.start_s == NOW + 60
    second = reserve_for(world, "second", first)
    assert second is not None
    assert second.start_s == NOW + 60 + 1800
    third = reserve_for(world, "third", first, second)
    assert third is not None
    assert third.start_s == NOW + 60 + 1800 + 300


def test_a_gang_may_end_before_a_reservation_begins() -> None:
    world = World(nodes=2)
    world.start("long", at_s=NOW, duration="1h")
    world.submit("large", pods=2)
    large = reserve_for(world, "large")
    world.submit("small", duration="59m")
    world.submit("longer", duration="61m")

    assert large is not None
    small = reserve_for(world, "small", large)
    assert small is not None
    assert small.start_s == NOW
    assert reserve_for(world, "longer", large) is None


def test_who_says_no_duration_ends_after_all_others() -> None:
    world = World(nodes=2)
    world.start("old", at_s=1)
    world.start("young", at_s=2)
    world.submit("large", pods=2)
    world.submit("one")

    large = reserve_for(world, "large")
    assert large is not None
    assert large.start_s is None
    one = reserve_for(world, "one")
    assert one is not None
    assert [gang.uid for gang in one.after] == ["old"]


def test_who_runs_past_its_duration_counts_as_ending_now() -> None:
    world = World(nodes=1)
    world.start("late", at_s=1, duration="1m")
    world.submit("next")
    (run,) = list_runs(world.snapshot, NOW)
    kept = reserve_for(world, "next")

    assert run.overruns
    assert kept is not None
    assert kept.start_s == NOW


def test_what_can_never_fit_has_no_reservation() -> None:
    world = World(nodes=1)
    world.start("runs", at_s=NOW, duration="1m")
    world.submit("large", pods=2)

    assert reserve_for(world, "large") is None
