"""Why pods wait, on a real bus: said once it lasts, withdrawn, and taken over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from contracts.ids import ClusterName
from contracts.reports import WAITING, GroupReported, ReportMessage
from contracts.topics import REPORTS
from publisher.cluster.report_publisher import ReportPublisher
from publisher.gangs.context import StatusReport
from publisher.gangs.view import GroupKey
from runtime.bus.bus import Bus
from tests.builders.plans import NOW
from tests.lab.services import eventually

CLUSTER = ClusterName("local")
TRAIN, GONE = GroupKey("team", "train"), GroupKey("team", "gone")
ALONE = GroupKey("team", "train", lone=True)
JOB = GroupKey("team", "train", api="Job")
MISSING = (StatusReport(phase=WAITING, reason="PodsMissing", message="3 of 4"),)
DIFFER = (StatusReport(phase=WAITING, reason="ClaimsDiffer"),)


@asynccontextmanager
async def leading(bus: Bus, *groups: GroupKey) -> AsyncIterator[ReportPublisher]:
    """Let a publisher lead that has these groups."""
    publisher = ReportPublisher(
        CLUSTER, bus, exists=groups.__contains__, now=lambda: NOW
    )
    stop = asyncio.Event()
    running = asyncio.create_task(publisher.publish(stop))
    try:
        yield publisher
    finally:
        stop.set()
        await running


async def read(bus: Bus, group: GroupKey) -> ReportMessage | None:
    kind = "Pod" if group.lone else group.api or "Gang"
    last = await bus.read_last(REPORTS, CLUSTER, group.namespace, kind, group.name)
    return None if last is None else last.message


async def until_reported(bus: Bus, reasons: dict[GroupKey, Sequence[str]]) -> None:
    """Wait until just these reasons are on the bus."""

    async def is_so() -> bool:
        found = {}
        for group in reasons:
            message = await read(bus, group)
            is_there = isinstance(message, GroupReported)
            reports = message.reports if isinstance(message, GroupReported) else ()
            found[group] = [report.reason for report in reports] if is_there else []
        return found == reasons

    await eventually(is_so, f"reported: {reasons}")


async def test_a_wait_that_lasts_is_on_the_bus_until_it_ends(bus: Bus) -> None:
    """The next leader withdraws what is nobody's any more, and goes on with the rest.

    A lone pod, a gang by label and one by its Job are three, whatever their names.
    """
    async with leading(bus) as first:
        for group in (TRAIN, GONE, JOB):
            first.report(group, MISSING)
        first.report(ALONE, DIFFER)
        await until_reported(
            bus,
            {
                TRAIN: ["PodsMissing"],
                GONE: ["PodsMissing"],
                ALONE: ["ClaimsDiffer"],
                JOB: ["PodsMissing"],
            },
        )
        first.report(ALONE, ())
        await until_reported(bus, {ALONE: []})
    async with leading(bus, TRAIN, JOB) as second:
        there = {TRAIN: ["PodsMissing"], JOB: ["PodsMissing"]}
        await until_reported(bus, {GONE: [], **there})
        second.report(TRAIN, ())
        await until_reported(bus, {TRAIN: []})
