"""What is kept for whom, and who may start before them: backfill.

A gang may start now if every reservation before it in order can still start when it was
promised: at once where it has ended by then, or where nothing of it is in the way; else
with a reservation on other devices, as early as before. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from contracts.lifecycle import GangRecord
from solver.problem.free_devices import leaves_room
from solver.queueing.gang_queue import rank_of
from solver.snapshot.snapshot import Snapshot
from solver.timeline.asking import Asker, AskerOf, Asking
from solver.timeline.futures import Members, with_gang
from solver.timeline.reserve import Reservation, Scene
from solver.timeline.runs import Seconds
from solver.timeline.timetable import Timetable


def list_in_the_way(
    record: GangRecord, book: Iterable[Reservation], now_s: Seconds
) -> tuple[Reservation, ...]:
    """List the reservations that a gang must leave alone if it starts now.

    Those before it in order that begin while it runs.
    """
    duration_s = record.duration_s
    until_s = None if duration_s is None else now_s + duration_s
    return tuple(
        each
        for each in book
        if is_before(each, record) and each.is_during(now_s, until_s)
    )


def is_before(reservation: Reservation, record: GangRecord) -> bool:
    """True if what is kept binds a gang: it is another's, of no lower priority.

    Pods that running gangs have lost come before all others of their priority.
    """
    if reservation.key == record.key:
        return False
    return rank_of(reservation.record) >= rank_of(record)


def keep_clear(snapshot: Snapshot, kept: Iterable[Reservation]) -> Snapshot:
    """Return the cluster in which what is kept counts as held already.

    A gang that has begun since holds what it was given, perhaps elsewhere.
    """
    for each in kept:
        if each.key in snapshot.waiting:
            snapshot = with_gang(snapshot, each.record, each.members, quota=each.quota)
    return snapshot


def make_way(
    asker_of: AskerOf, scene: Scene, record: GangRecord
) -> Asking[tuple[Reservation, ...] | None]:
    """Keep other devices for those in whose way a gang would start now.

    Returns:
        All reservations, as early as before, which leave the gang a place; None: it
        has none, or somebody would start later.

    Raises:
        VerdictMissingError: a selector was not evaluated for all devices.
    """
    asker, moved = asker_of(record), list(scene.kept)
    aside = list_in_the_way(record, moved, scene.table.now_s)
    if asker is None or not aside:
        return None
    if not all(_leaves_room(asker, scene.table, record, each) for each in aside):
        return None
    fit = yield from asker.place(scene.table.snapshot, record)
    if not fit:
        return None
    for number, each in enumerate(scene.kept):
        if each in aside:
            others = (*moved[:number], *moved[number + 1 :])
            begun = (record, fit.members)
            elsewhere = yield from _keep_elsewhere(
                asker_of, structs.replace(scene, kept=others), each, begun
            )
            if elsewhere is None:
                return None
            moved[number] = elsewhere
    return tuple(moved)


def _leaves_room(
    asker: Asker, table: Timetable, begins: GangRecord, kept: Reservation
) -> bool:
    """False if counting says that a gang leaves too few devices, wherever it begins."""
    now, start_s = table.list_free(0), kept.start_s
    if now is None or start_s is None:
        return True
    then = table.list_free(table.count_ended(start_s))
    (first,) = asker.resolve(table.snapshot, begins)
    (second,) = asker.resolve(table.snapshot, kept.record)
    return then is None or leaves_room(first, now, second, then)


def _keep_elsewhere(
    asker_of: AskerOf,
    scene: Scene,
    reservation: Reservation,
    begun: tuple[GangRecord, Members],
) -> Asking[Reservation | None]:
    """Keep other devices for a gang beside one that has begun, as early."""
    asker = asker_of(reservation.record)
    start_s, until_s = reservation.start_s, reservation.until_s
    if asker is None or start_s is None:
        return None
    company = (each for each in scene.kept if each.is_during(start_s, until_s))
    state = keep_clear(with_gang(scene.table.at(start_s), *begun), company)
    fit = yield from asker.place(state, reservation.record)
    if not fit:
        return None
    return structs.replace(reservation, members=fit.members, problem=fit.problem)
