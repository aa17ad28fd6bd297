"""Who may start before those for whom something is kept."""

from __future__ import annotations

from msgspec import structs

from solver.allocate import allocate
from solver.timeline.asking import answer_all
from solver.timeline.book import is_before, keep_clear, list_in_the_way, make_way
from solver.timeline.futures import with_gang
from solver.timeline.reserve import Reservation, Scene, reserve
from solver.timeline.timetable import Timetable
from tests.builders.timeline import World

NOW = 1000


def look(world: World, *kept: Reservation) -> Scene:
    return Scene(table=Timetable(world.snapshot, NOW), kept=kept)


def kept_for(world: World, name: str) -> Reservation:
    record = world[name]
    made = answer_all(reserve(world.asker(record), look(world), record), allocate)
    assert made is not None
    return made


def test_a_reservation_binds_those_of_no_higher_priority() -> None:
    world = World(nodes=1)
    world.start("runs", at_s=NOW, duration="1h")
    waits = world.submit("waits", priority=5)
    kept = kept_for(world, "waits")

    assert is_before(kept, world.submit("equal", priority=5))
    assert is_before(kept, world.submit("lower", priority=4))
    assert not is_before(kept, world.submit("higher", priority=6))
    assert not is_before(kept, waits)


def test_only_who_still_runs_then_must_leave_it_alone() -> None:
    world = World(nodes=2)
    world.start("runs", at_s=NOW, duration="1h")
    world.submit("waits", pods=2)
    kept = kept_for(world, "waits")

    assert list_in_the_way(world.submit("short", duration="1h"), [kept], NOW) == ()
    for name, duration in (("long", "61m"), ("endless", "")):
        gang = world.submit(name, duration=duration)
        assert list_in_the_way(gang, [kept], NOW) == (kept,)
        asker = world.asker(gang)
        clear = keep_clear(world.snapshot, [kept])
        assert answer_all(asker.find(world.snapshot, gang), allocate)
        assert not answer_all(asker.find(clear, gang), allocate)


def test_who_waits_elsewhere_as_early_makes_way() -> None:
    """Of two nodes that are free then, one is enough."""
    world = World(nodes=3)
    world.start("a", at_s=NOW, duration="1h")
    world.start("b", at_s=NOW, duration="1h")
    world.submit("waits", pods=2, duration="1h")
    kept = kept_for(world, "waits")
    free = {"n-0", "n-1", "n-2"} - {
        pod.node
        for r in ("a", "b")
        for pod in world[r].placed.members  # type: ignore[union-attr]
    }
    third = structs.replace(kept, start_s=NOW + 3600)
    fills = world.submit("fills", duration="2h")

    moved = answer_all(make_way(world.asker, look(world, third), fills), allocate)
    if free & {pod.node for pod in third.members}:
        assert moved is not None
        assert not free & {pod.node for each in moved for pod in each.members}
        assert moved[0].start_s == NOW + 3600
    endless = world.submit("large", pods=3)
    assert not answer_all(make_way(world.asker, look(world, third), endless), allocate)


def test_who_has_begun_elsewhere_keeps_what_it_was_given() -> None:
    """Else its own devices would seem free until the next look."""
    world = World(nodes=2)
    world.start("runs", at_s=NOW, duration="1h")
    world.submit("waits", pods=2, gpus=4, duration="1h")
    kept = kept_for(world, "waits")
    begun = with_gang(world.snapshot, world["waits"], kept.members)
    elsewhere = structs.replace(kept, members=world["runs"].placed.members)  # type: ignore[union-attr]
    assert keep_clear(begun, [elsewhere]) is begun
