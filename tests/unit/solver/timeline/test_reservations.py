"""Reservations as whoever decides batches uses them."""

from __future__ import annotations

from contracts.allocation import Rule
from solver.allocate import allocate
from solver.snapshot.snapshot import GangAged, apply
from solver.timeline.asking import answer_all
from solver.timeline.keeper import Outlook
from solver.timeline.reservations import Reservations
from tests.builders.timeline import World

NOW = 1000


def outlook(world: World) -> Outlook:
    return Outlook(
        snapshot=world.snapshot, now_s=NOW, asker_of=world.asker, patience_s=0
    )


def test_who_is_barred_is_told_and_tried_again_when_the_book_changes() -> None:
    world = World(nodes=2)
    world.start("runs", at_s=NOW, duration="1h")
    world.wait_for("large", pods=2)
    reservations = Reservations()
    assert answer_all(reservations.look(outlook(world)), allocate) == []

    endless = world.submit("endless")
    hours = world.submit("hours", duration="2h")
    told = [reservations.explain(each, NOW) for each in (endless, hours)]
    assert [[reason.rule for reason in reasons] for reasons in told] == [
        [Rule.RESERVED],
        [Rule.RESERVED],
    ]
    assert "gives no duration" in told[0][0].message
    assert "runs for longer" in told[1][0].message
    assert reservations.explain(world.submit("short", duration="1m"), NOW) == ()
    world.cancel("large")
    again = answer_all(reservations.look(outlook(world)), allocate)
    assert sorted(again) == sorted([endless.key, hours.key])
    assert reservations.book.kept == ()


def test_a_batch_is_of_those_who_must_leave_the_same_alone() -> None:
    world = World(nodes=2)
    world.start("runs", at_s=NOW, duration="1h")
    large = world.wait_for("large", pods=2)
    reservations = Reservations()
    answer_all(reservations.look(outlook(world)), allocate)

    admission = next(reservations.admissions(lambda _: False, NOW))
    assert admission.takes(world.submit("endless"))
    assert admission.takes(world.submit("hours", duration="2h"))
    assert not admission.takes(world.submit("short", duration="1m"))
    assert not admission.takes(large)
    beside = next(reservations.admissions(lambda _: False, NOW))
    assert beside.takes(world["short"])
    assert beside.takes(large)
    clear = reservations.clear(world.snapshot, [world["endless"]], NOW)
    assert clear is not world.snapshot
    assert reservations.clear(world.snapshot, [large], NOW) is world.snapshot


def test_those_for_whom_something_is_kept_are_tried_first() -> None:
    world = World(nodes=2)
    world.start("runs", at_s=NOW, duration="1h")
    large = world.wait_for("large", pods=2)
    reservations = Reservations()
    answer_all(reservations.look(outlook(world)), allocate)
    short = world.submit("short", duration="1m")

    first, second = reservations.admissions(lambda gang: gang == large.key, NOW)
    assert (first.takes(short), first.takes(large)) == (False, True)
    assert second.takes(short)


def test_who_is_more_urgent_is_tried_with_them() -> None:
    """A promise is of its turn: it holds nobody up who comes before it."""
    world = World(nodes=2)
    world.start("runs", at_s=NOW, duration="1h")
    large = world.wait_for("large", pods=2)
    reservations = Reservations()
    answer_all(reservations.look(outlook(world)), allocate)
    urgent = world.submit("urgent", priority=1)

    first, _ = reservations.admissions(lambda gang: gang == large.key, NOW)
    assert (first.takes(urgent), first.takes(large)) == (True, True)


def test_what_is_kept_has_the_priority_of_its_gangs_age() -> None:
    """Else who gains priority at the same time would be before it."""
    world = World(nodes=2)
    world.start("runs", at_s=NOW, duration="1h")
    large = world.wait_for("large", pods=2)
    reservations = Reservations()
    answer_all(reservations.look(outlook(world)), allocate)
    endless = world.submit("endless")
    ages = [GangAged(gang=each.key, steps=2) for each in (large, endless)]
    snapshot = apply(apply(world.snapshot, ages[0]), ages[1])
    endless = snapshot.waiting.get(endless.key) or endless
    assert reservations.list_aside(endless, NOW) == ()
    reservations.follow_ages(snapshot)
    (kept,) = reservations.list_aside(endless, NOW)
    assert (kept.key, kept.record.aged) == (large.key, 2)
