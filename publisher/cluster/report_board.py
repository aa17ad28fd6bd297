"""What holds of each group of pods, once it has held for a while.

Most of what pods wait for is over in a moment, and what they wait for changes its words
all the time. Pure; times are of any clock that only grows.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from contracts.reports import PodsReport
from publisher.cluster.delay_queue import DelayQueue
from publisher.gangs.view import GroupKey

SETTLE_S = 5.0
"""What lasts less is not shown to anybody."""


class Notice(Struct, frozen=True):
    """What holds of a group, and since when for these reasons (RFC 3339)."""

    reports: tuple[PodsReport, ...]
    since: str

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """What makes a notice news: messages change all the time."""
        return sorted((report.phase, report.reason) for report in self.reports)


class ReportBoard:
    """The notice of each group that has one."""

    def __init__(self) -> None:
        self._notices: dict[GroupKey, Notice] = {}
        self._due: DelayQueue[GroupKey] = DelayQueue()
        self._looked: set[GroupKey] | None = set()
        """Groups of which anything was noted; None: nothing is adopted any more."""

    def note(
        self, group: GroupKey, reports: tuple[PodsReport, ...], now_s: float, now: str
    ) -> None:
        """Note what holds for a group from `now` (RFC 3339); empty: all is well."""
        last = self._notices.pop(group, None)
        if self._looked is not None:
            self._looked.add(group)
        if not reports:
            if last is not None:
                self._due.put(group, now_s)
            return
        notice = Notice(reports, now)
        if last is not None and last.reasons == notice.reasons:
            self._notices[group] = Notice(reports, last.since)
            if last.reports != reports:
                self._due.put_by(group, now_s + SETTLE_S)
            return
        self._notices[group] = notice
        self._due.put(group, now_s + SETTLE_S)

    def adopt(self, group: GroupKey, notice: Notice) -> bool:
        """Take over what another publisher found, unless we have looked ourselves."""
        if self._looked is None or group in self._looked:
            return False
        self._notices[group] = notice
        return True

    def end_adoption(self) -> None:
        """From now on only what is noted counts."""
        self._looked = None

    def take(self, now_s: float) -> Iterator[tuple[GroupKey, Notice | None]]:
        """Yield the groups whose notice is to be shown, or taken down (None)."""
        while (due_s := self._due.next_s()) is not None and due_s <= now_s:
            group = self._due.take()
            yield group, self._notices.get(group)
