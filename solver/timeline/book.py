"""What is kept for whom, and who may start before them: backfill.

A gang may start now if every reservation before it in order can still start when it was
promised: at once where it has ended by then, or where nothing of it is in the way; else
with a reservation on other devices, as early as before. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from contracts.ids import GangKey
from contracts.lifecycle import GangRecord
from solver.snapshot.snapshot import Snapshot
from solver.timeline.asking import Asker, Asking
from solver.timeline.futures import Members, with_gang, without_gangs
from solver.timeline.reserve import Reservation
from solver.timeline.runs import Run, Seconds, duration_of

MOST_RESERVATIONS = 16


def list_in_the_way(
    record: GangRecord, book: Iterable[Reservation], now_s: Seconds
) -> tuple[Reservation, ...]:
    """List the reservations that a gang must leave alone if it starts now.

    Those before it in order that begin while it runs.
    """
    duration_s = duration_of(record)
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
    kept, asked = _rank_of(reservation.record), _rank_of(record)
    return kept >= asked


def _rank_of(record: GangRecord) -> tuple[int, bool]:
    submission = record.submission
    if submission is None:
        return (0, False)
    return (submission.gang.spec.priority, submission.restores > 0)


def keep_clear(snapshot: Snapshot, kept: Iterable[Reservation]) -> Snapshot:
    """Return the cluster in which what is kept counts as held already."""
    for each in kept:
        snapshot = with_gang(snapshot, each.record, each.members)
    return snapshot


def move_aside(
    asker: Asker,
    snapshot: Snapshot,
    started: tuple[GangRecord, Members],
    runs: Sequence[Run],
    book: Sequence[Reservation],
    aside: Sequence[Reservation],
) -> Asking[tuple[Reservation, ...] | None]:
    """Keep other devices for those of the book in whose way a gang would start now.

    Returns:
        The book with all as early as before; None: somebody would start later.

    Raises:
        VerdictMissingError: a selector was not evaluated for all devices.
    """
    begun = with_gang(snapshot, *started)
    moved = list(book)
    for number, each in enumerate(book):
        if each in aside:
            others = (*moved[:number], *moved[number + 1 :])
            elsewhere = yield from _keep_elsewhere(asker, begun, each, runs, others)
            if elsewhere is None:
                return None
            moved[number] = elsewhere
    return tuple(moved)


def _keep_elsewhere(
    asker: Asker,
    begun: Snapshot,
    reservation: Reservation,
    runs: Sequence[Run],
    others: Iterable[Reservation],
) -> Asking[Reservation | None]:
    start_s, until_s = reservation.start_s, reservation.until_s
    if start_s is None:
        return None
    ended = (r.record for r in runs if r.ends_s is not None and r.ends_s <= start_s)
    company = (each for each in others if each.is_during(start_s, until_s))
    state = keep_clear(without_gangs(begun, ended), company)
    fit = yield from asker.place(state, reservation.record)
    return structs.replace(reservation, members=fit.members) if fit else None


def find_reservation(book: Iterable[Reservation], gang: GangKey) -> Reservation | None:
    """Find what is kept for a gang."""
    return next((each for each in book if each.key == gang), None)
