"""Says on the bus what pods wait for that are not submitted, and what befell others.

For people who read the bus and not the cluster. One message a group, the newest; it is
withdrawn when all is well again, and forgotten within the hour when nobody repeats it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic

from contracts.ids import ClusterName, Namespace
from contracts.reports import GroupReported, ReportWithdrawn
from contracts.topics import HOUR_S, REPORTS
from publisher.cluster.outbox import Outbox
from publisher.cluster.outbox_sender import send_due
from publisher.cluster.report_board import Notice, ReportBoard
from publisher.gangs.context import StatusReport
from publisher.gangs.reports import report_on_bus
from publisher.gangs.view import GroupKey
from runtime.bus.bus import Bus
from runtime.refusals import Refusals
from runtime.waits import first_of
from runtime.wire import Outgoing

_GANG, _POD = "Gang", "Pod"
_REPEAT_S = HOUR_S / 3
"""The stream forgets what is not said again."""
_LOOK_S = 1.0


class ReportPublisher:
    """What was reported of each group, and what of it the bus holds."""

    def __init__(
        self,
        cluster: ClusterName,
        bus: Bus,
        *,
        exists: Callable[[GroupKey], bool],
        now: Callable[[], str],
    ) -> None:
        """`exists` is true of groups that somebody will look at again."""
        self._cluster = cluster
        self._bus = bus
        self._exists = exists
        self._now = now
        self._board = ReportBoard()
        self._outbox = Outbox()
        self._connection = 0
        """The bus's connection when it was last read."""
        self._repeat_at_s = 0.0
        self._refusals = Refusals()

    def report(self, group: GroupKey, reports: Sequence[StatusReport]) -> None:
        """Publish these reports once they have held for a while."""
        self._board.note(group, report_on_bus(reports), monotonic(), self._now())

    async def publish(self, stop: asyncio.Event) -> None:
        """Publish everything that is due, while we lead."""
        self._connection = 0
        try:
            while not stop.is_set():
                if self._connection != self._bus.connection:
                    await self._compare_with_bus(stop)
                elif self._repeat_at_s <= monotonic():
                    self._expect_on_bus({})
                for group, notice in self._board.take(monotonic()):
                    # What cannot be said of one group stops no other.
                    with self._refusals.guard(f"report/{group}"):
                        self._put_notice(group, notice)
                while self._outbox and not stop.is_set():
                    event = "report.delayed"
                    await send_due(
                        self._bus, self._outbox, _address_report, stop, event
                    )
                await first_of(stop, within_s=_LOOK_S)
        finally:
            self._board, self._outbox = ReportBoard(), Outbox()

    async def _compare_with_bus(self, stop: asyncio.Event) -> None:
        """Learn what the bus holds; what nobody will look at again is withdrawn."""
        self._connection = self._bus.connection
        held: dict[str, bytes] = {}
        async for batch in self._bus.read_existing(REPORTS, self._cluster, stop=stop):
            for incoming in batch.messages:
                message, subject = incoming.message, REPORTS.subject(*incoming.names)
                if isinstance(message, GroupReported):
                    held[subject] = incoming.data
                    with self._refusals.guard(incoming):
                        self._adopt_report(message, subject, incoming.data)
            held.update((refused.subject, b"") for refused in batch.refused)
        self._board.end_adoption()
        self._expect_on_bus(held)

    def _expect_on_bus(self, held: dict[str, bytes]) -> None:
        self._outbox.begin(held)
        self._repeat_at_s = monotonic() + _REPEAT_S

    def _adopt_report(self, message: GroupReported, subject: str, data: bytes) -> None:
        kind = message.kind
        api = "" if kind in (_POD, _GANG) else kind
        group = GroupKey(message.namespace, message.name, lone=kind == _POD, api=api)
        notice = Notice(message.reports, message.since)
        if self._exists(group) and self._board.adopt(group, notice):
            self._outbox.put(subject, data)

    def _put_notice(self, group: GroupKey, notice: Notice | None) -> None:
        kind = _POD if group.lone else group.api or _GANG
        message = None
        if notice is not None:
            message = GroupReported(
                cluster=self._cluster,
                namespace=Namespace(group.namespace),
                kind=kind,
                name=group.name,
                since=notice.since,
                reports=notice.reports,
            )
        subject = REPORTS.subject(self._cluster, group.namespace, kind, group.name)
        data = None if message is None else REPORTS.codec.encode(message)
        self._outbox.put(subject, data)


def _address_report(subject: str, data: bytes | None) -> Outgoing:
    if data is not None:
        return Outgoing(subject=subject, data=data, zstd=REPORTS.zstd)
    cluster, namespace, kind, name = REPORTS.names_of(subject)
    withdrawn = ReportWithdrawn(
        cluster=ClusterName(cluster),
        namespace=Namespace(namespace),
        kind=kind,
        name=name,
    )
    return Outgoing.of(REPORTS, withdrawn)
