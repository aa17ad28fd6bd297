"""A publisher that leads says so on a real bus, and a person hears when none does."""

from __future__ import annotations

import asyncio
from pathlib import Path

from contracts.ids import ClusterName
from contracts.liveness import PublisherLeads
from contracts.topics import LEADERS
from publisher.cluster.liveness import say_leading
from runtime.bus.bus import Bus
from tests.lab.command_line import moorings
from tests.lab.nats_server import LabServer
from tests.lab.services import eventually

CLUSTER = ClusterName("local")
LONG_AGO = "2026-01-01T00:00:00Z"


async def test_who_leads_is_on_the_bus_and_missed_when_it_is_silent(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    lost = asyncio.Event()
    leading = asyncio.create_task(
        say_leading(bus, CLUSTER, "one", lambda: LONG_AGO, lost)
    )

    async def said() -> bool:
        last = await bus.read_last(LEADERS, CLUSTER)
        expected = PublisherLeads(cluster=CLUSTER, holder="one", at=LONG_AGO)
        return last is not None and last.message == expected

    await eventually(said, "said to lead")
    lost.set()
    await leading
    shown = await asyncio.to_thread(
        moorings, "get", "gangs", home=tmp_path, server=nats_server.url
    )
    assert shown.returncode == 0, shown.stderr
    told = f"no publisher leads in cluster local: one was last heard of at {LONG_AGO}"
    assert told in " ".join(shown.stderr.split())
