"""What cannot be said of one group stops nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import cast

import pytest

from contracts.ids import ClusterName
from contracts.reports import WAITING
from publisher.cluster.report_publisher import ReportPublisher
from publisher.gangs.context import StatusReport
from publisher.gangs.view import GroupKey
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests.builders.plans import NOW


class EmptyBus:
    """Holds nothing; ends the publisher once something was published."""

    connection = 1

    def __init__(self, stop: asyncio.Event) -> None:
        self.subjects: list[str] = []
        self._stop = stop

    async def read_existing(self, *_: object, **__: object) -> AsyncIterator[object]:
        """Have nothing."""
        if self.subjects:
            yield None

    async def publish_many(self, messages: Iterable[Outgoing]) -> int:
        """Take everything."""
        self.subjects += [message.subject for message in messages]
        self._stop.set()
        return 1


async def test_a_group_whose_name_fits_no_subject_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("publisher.cluster.report_board.SETTLE_S", 0.0)
    stop = asyncio.Event()
    bus = EmptyBus(stop)
    publisher = ReportPublisher(
        ClusterName("local"), cast("Bus", bus), exists=lambda _: True, now=lambda: NOW
    )
    waits = [StatusReport(phase=WAITING, reason="PodsMissing")]
    for name in ("x" * 1000, "train"):
        publisher.report(GroupKey("team", name), waits)
    await asyncio.wait_for(publisher.publish(stop), 30)
    assert bus.subjects == ["report.v1.local.team.Gang.train"]
