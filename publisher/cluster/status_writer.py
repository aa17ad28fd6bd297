"""Writes what people read: the status of Gang objects and events, behind the work.

Never in the way of an allocation: written later, a few groups at a time, and only what
is new. What still holds is written again before its event is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import Any

from publisher.cluster.delay_queue import DelayQueue
from publisher.cluster.event_writer import EventWriter
from publisher.cluster.observer import Observer
from publisher.gangs.context import StatusReport
from publisher.gangs.notes import Note, list_notes, list_pointers
from publisher.gangs.status import is_past, make_gang_status
from publisher.gangs.view import GroupKey
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, NotFoundError
from runtime.kube.kinds import GANG
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.waits import first_of

_SETTLE_S = 1.0
"""What lasts less is not written."""
_IN_FLIGHT = 4
"""Groups that are written at a time."""
_AGAIN_S = 10.0
"""When to try what could not be written."""

log = get_logger(__name__)


class StatusWriter:
    """What to write about each group, and when."""

    def __init__(
        self,
        api: KubernetesApi,
        observer: Observer,
        name: str,
        now: Callable[[], str],
    ) -> None:
        """`name` is this publisher's, as events say who reports."""
        self._api = api
        self._observer = observer
        self._now = now
        self._reports: dict[GroupKey, tuple[StatusReport, ...]] = {}
        """What was last reported of each group, while there is something to say."""
        self._due: DelayQueue[GroupKey] = DelayQueue()
        """When each group is written next."""
        self._events = EventWriter(api, name)
        self._wake = asyncio.Event()
        self._refusals = Refusals()

    def report(self, group: GroupKey, reports: Sequence[StatusReport]) -> None:
        """Write this soon, unless something else is reported before.

        The group is written by `write`, which may run all the time: it has something
        to write only while somebody reports.
        """
        last = self._reports.get(group, ())
        self._reports[group] = tuple(reports)
        soon_s = monotonic() + _SETTLE_S
        if _list_reasons(last) == _list_reasons(reports):
            self._due.put_by(group, soon_s)
        else:
            self._due.put(group, soon_s)
        self._wake.set()

    async def report_now(
        self, group: GroupKey, reports: Sequence[StatusReport]
    ) -> None:
        """Write what would be gone before it is due, such as why pods are deleted."""
        with self._refusals.guard(f"status/{group}"):
            try:
                await self._write_group(group, reports)
            except ApiError as error:
                log.warning("status.missed", gang=str(group), reason=str(error))
                self._due.put_by(group, monotonic() + _AGAIN_S)

    async def tell(self, note: Note) -> None:
        """Write a note about no group, unless it was told before."""
        await self._events.tell(note)

    def fall_silent(self) -> None:
        """Write nothing more of what was reported: another publisher does."""
        self._reports.clear()
        self._due.clear()

    async def write(self, stop: asyncio.Event) -> None:
        """Write each group when it is due, until `stop`."""
        while not stop.is_set():
            self._wake.clear()
            due = tuple(islice(self._take_due(), _IN_FLIGHT))
            async with asyncio.TaskGroup() as tasks:
                for group, reports in due:
                    tasks.create_task(self.report_now(group, reports))
            if not due:
                next_s = self._due.next_s()
                within_s = None if next_s is None else next_s - monotonic()
                await first_of(stop, self._wake, within_s=within_s)

    def _take_due(self) -> Iterator[tuple[GroupKey, Sequence[StatusReport]]]:
        """Go through the groups that are due, with what was reported of each."""
        while (next_s := self._due.next_s()) is not None and next_s <= monotonic():
            group = self._due.take()
            reports = self._reports.get(group, ())
            if not reports:
                self._reports.pop(group, None)
            yield group, reports

    async def _write_group(
        self, group: GroupKey, reports: Sequence[StatusReport]
    ) -> None:
        gang = self._observer.view.gang(group)
        if gang is not None:
            written = self._observer.statuses.get(str(group), {})
            pods = self._observer.view.pods(group)
            if is_past(pods, written):
                return
            status = make_gang_status(gang, reports, pods, written, self._now())
            if any(written.get(name) != value for name, value in status.items()):
                await self._write_status(str(group), status)
        lead = self._observer.view.lead(group)
        notes = (*list_notes(reports, lead), *list_pointers(reports, lead))
        await self._write_notes(group, notes)

    async def _write_notes(self, group: GroupKey, pending: Sequence[Note]) -> None:
        """Write the notes that are due, and look at the others when they are."""
        waits_s = await self._events.write_due(pending)
        if waits_s:
            self._due.put_by(group, monotonic() + min(waits_s))

    async def _write_status(self, key: str, status: dict[str, Any]) -> None:
        try:
            body = {"status": status}
            raw = await self._api.patch(GANG, key, body, subresource="status")
        except NotFoundError:
            return
        self._observer.apply("Gang", key, raw, raw["metadata"]["uid"])


def _list_reasons(reports: Sequence[StatusReport]) -> list[tuple[str, str]]:
    """Return what makes reports news; counts in their words change all the time."""
    return [(report.phase, report.reason) for report in reports]
