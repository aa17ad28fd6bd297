"""Reservations as whoever decides batches uses them: beside the service, in simulation.

Holds the book from one look to the next, and whom it bars. Pure: time, Snapshot and
answers come from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.counts import listed
from contracts.ids import GangKey
from contracts.lifecycle import GangRecord
from solver.queueing.gang_queue import rank_of
from solver.snapshot.snapshot import Snapshot
from solver.timeline.asking import Asking
from solver.timeline.book import keep_clear, list_in_the_way, make_way
from solver.timeline.keeper import Book, Outlook, keep_book, list_beyond
from solver.timeline.preempting import Preempting
from solver.timeline.reserve import Reservation, Scene
from solver.timeline.runs import Seconds

MOST_WAYS = 4
"""Gangs in one look for which others are moved aside."""
MOST_NAMED = 3


class Reservations:
    """What is kept for whom, and who waits because of it."""

    def __init__(self) -> None:
        self.book = Book()
        self.preempting = Preempting()
        self._barred: dict[GangKey, bool] = {}
        """Gangs in whose way something is that is kept for others: True where nobody
        has looked yet whether those could make way."""

    # --- beside a batch --------------------------------------------------------------

    def list_aside(self, record: GangRecord, now_s: Seconds) -> tuple[Reservation, ...]:
        """List what a gang must leave alone if it starts now."""
        kept = self.book.kept
        return list_in_the_way(record, kept, now_s) if kept else ()

    def admissions(
        self, is_lined_up: Callable[[GangKey], bool], now_s: Seconds
    ) -> Iterator[OneWay]:
        """Begin a batch: yield who may be tried, until somebody is.

        First those whose turn it is and for whom something is kept, and whoever comes
        before one of them: others could take what has become free for them before it
        was promised.
        """
        first = tuple(e.record for e in self.book.kept if is_lined_up(e.key))
        if first:
            yield OneWay(self, now_s, first)
        yield OneWay(self, now_s)

    def clear(
        self, snapshot: Snapshot, batch: Sequence[GangRecord], now_s: Seconds
    ) -> Snapshot:
        """Return the cluster as the gangs of a batch may use it."""
        return keep_clear(snapshot, self.list_aside(batch[0], now_s))

    def explain(self, record: GangRecord, now_s: Seconds) -> tuple[Reason, ...]:
        """Say what a gang that waits must leave alone, and remember that it must."""
        aside = self.list_aside(record, now_s)
        if not aside:
            self._barred.pop(record.key, None)
            return ()
        self._barred[record.key] = True
        names = listed([name_gang(each.record) for each in aside[:MOST_NAMED]])
        known = "runs for longer" if record.duration_s else "gives no duration"
        message = (
            f"devices are kept for {names}; this gang could have them if it ended "
            f"before they are needed, but it {known}"
        )
        return (Reason(rule=Rule.RESERVED, message=message),)

    def follow_ages(self, snapshot: Snapshot) -> None:
        """Let those for whom something is kept have the priority of their age."""
        kept = tuple(_with_age(each, snapshot) for each in self.book.kept)
        if kept != self.book.kept:
            self.book = structs.replace(self.book, kept=kept)

    # --- between batches -------------------------------------------------------------

    def look(self, look: Outlook) -> Asking[list[GangKey]]:
        """Look at the book once more.

        Returns:
            Gangs that are to be tried again: less is in their way, or something else.

        Raises:
            VerdictMissingError: a selector was not evaluated for all devices.
        """
        self.follow_ages(look.snapshot)
        before = self.book.kept
        self.book = yield from keep_book(self.book, look)
        waiting = look.snapshot.waiting
        self._barred = {g: new for g, new in self._barred.items() if g in waiting}
        if self.book.kept:
            yield from self._make_ways(look)
        yield from self._preempt(look)
        if self.book.kept == before:
            return []
        barred, self._barred = list(self._barred), {}
        return barred + [
            each.key
            for each in self.book.kept
            if each.start_s == look.now_s and each not in before
        ]

    def _preempt(self, look: Outlook) -> Asking[None]:
        """Keep what becomes free for whom others go, ahead of what was kept for it."""
        kept = self.book.kept
        plan = yield from self.preempting.look(look, kept)
        if plan is not None:
            made = plan.reservation
            others = tuple(each for each in kept if each.key != made.key)
            beyond = list_beyond(made, look.table.runs, others)
            self.book = structs.replace(
                self.book,
                kept=(*others, made),
                beyond={**self.book.beyond, made.key: beyond},
            )

    def _make_ways(self, look: Outlook) -> Asking[None]:
        new = [gang for gang, is_new in self._barred.items() if is_new][:MOST_WAYS]
        for gang in new:
            self._barred[gang] = False
            record = look.snapshot.waiting.get(gang)
            if record is None:
                continue
            scene = Scene(table=look.table, kept=self.book.kept)
            moved = yield from make_way(look.asker_of, scene, record)
            if moved is not None:
                self.book = structs.replace(self.book, kept=moved)


def _with_age(kept: Reservation, snapshot: Snapshot) -> Reservation:
    """Return a reservation with its gang's age, if that waits."""
    waits = snapshot.waiting.get(kept.key)
    if waits is None or waits.aged == kept.record.aged:
        return kept
    record = structs.replace(kept.record, aged=waits.aged)
    return structs.replace(kept, record=record)


class OneWay:
    """Lets gangs into one batch in whose way the same is kept for others."""

    def __init__(
        self,
        reservations: Reservations,
        now_s: Seconds,
        first: tuple[GangRecord, ...] = (),
    ) -> None:
        """`first`: they and those of higher rank may be tried; empty: everybody may."""
        self._reservations = reservations
        self._now_s = now_s
        self._first = frozenset(record.key for record in first)
        self._least_rank = min(map(rank_of, first), default=None)
        self._aside: frozenset[GangKey] | None = None
        """What is kept from the gangs that are in the batch; None: none is."""

    def takes(self, record: GangRecord) -> bool:
        """Take a gang into the batch; False: it is for another one."""
        if not self._is_first(record):
            return False
        kept = self._reservations.list_aside(record, self._now_s)
        aside = frozenset(each.key for each in kept)
        if self._aside is None:
            self._aside = aside
        return self._aside == aside

    def _is_first(self, record: GangRecord) -> bool:
        if self._least_rank is None or record.key in self._first:
            return True
        return rank_of(record) > self._least_rank


def name_gang(record: GangRecord) -> str:
    """Name a gang to people."""
    return f"{record.namespace}/{record.name}"
