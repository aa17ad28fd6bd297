"""What else would let a gang in, of what a Problem does not know: quota, and time.

A Problem has neither the quotas that refused a gang nor the ends of those that run, so
these are asked of a Snapshot, beside what is kept for others. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from contracts.lifecycle import GangRecord
from solver.timeline.asking import Asker, Asking
from solver.timeline.book import keep_clear, list_in_the_way
from solver.timeline.changes import Answers, SmallestChange
from solver.timeline.keeper import Book, Outlook, keep_book
from solver.timeline.quota_raises import describe_raises, list_raises, with_raises
from solver.timeline.reserve import Scene, reserve

FOR_EVER_S = 1 << 62
"""Later than every end that is known."""


class ClusterChangeSearch:
    """Looks for changes of one cluster that let a gang in that waits."""

    def __init__(self, look: Outlook, asker: Asker, record: GangRecord) -> None:
        """Prepare a search.

        `look`: how reservations are looked at; `asker`: who asks about the gang.
        """
        self._look, self._asker, self._record = look, asker, record
        self._book: Book | None = None

    def searches(self) -> Iterator[Answers]:
        """Go through the kinds of change, those that cost least first."""
        yield self._find_quota()
        yield self._find_start()

    def _keep_book(self) -> Asking[Book]:
        if self._book is None:
            self._book = yield from keep_book(Book(), self._look)
        return self._book

    def _find_quota(self) -> Answers:
        """Find the least quota that is enough, if quota is what refuses the gang."""
        book, now_s = (yield from self._keep_book()), self._look.now_s
        aside = list_in_the_way(self._record, book.kept, now_s)
        clear = keep_clear(self._look.snapshot, aside)
        found = []
        for gang in self._asker.resolve(clear, self._record):
            for raises in list_raises(clear, gang):
                changed = with_raises(clear, raises)
                fit = yield from self._asker.find(changed, self._record)
                text = describe_raises(raises)
                found.append(
                    SmallestChange(
                        sort="quota", text=text, helps=bool(fit), quotas=raises
                    )
                )
        return found

    def _find_start(self) -> Answers:
        """Find the earliest start, if it is known: what is kept for the gang, or was.

        Nothing is found if it could start now.
        """
        book = yield from self._keep_book()
        kept = book.find(self._record)
        if kept is None:
            scene = Scene(table=self._look.table, kept=book.kept)
            kept = yield from reserve(
                self._asker, scene, self._record, before_s=FOR_EVER_S
            )
        if kept is None or kept.start_s is None or kept.start_s <= self._look.now_s:
            return []
        at = datetime.fromtimestamp(kept.start_s, UTC)
        return [
            SmallestChange(
                sort="wait",
                text=f"it waits until {at:%Y-%m-%d %H:%M:%S} UTC",
                helps=True,
                start_s=kept.start_s,
                proven=kept.proven,
            )
        ]
