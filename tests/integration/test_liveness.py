"""A publisher that leads says so on a real bus, and a person hears when none does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from subprocess import CompletedProcess

from contracts.codec import encode
from contracts.fence import EpochClaimed
from contracts.ids import ClusterName
from contracts.kubernetes.decode import to_kubernetes
from contracts.liveness import PublisherLeads
from contracts.topics import FENCE, LEADERS
from moorings.views.times import show_time
from publisher.cluster.liveness import say_leading
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests import builders
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
    heard = show_time(LONG_AGO)
    told = f"no publisher leads in cluster local: one was last heard from at {heard}"
    assert told in " ".join(shown.stderr.split())


async def test_who_submits_and_who_looks_hears_that_no_solver_answers(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    gang = tmp_path / "gang.json"
    gang.write_bytes(encode(to_kubernetes(builders.gang())))

    async def call(*arguments: str) -> CompletedProcess[str]:
        return await asyncio.to_thread(
            moorings, *arguments, home=tmp_path, server=nats_server.url
        )

    submit = ("submit", "-f", str(gang), "--wait", "--timeout", "0.5")
    assert "no solver has ever led in cluster local" in (await call(*submit)).stderr
    for what in ("gangs", "devices", "nodes"):
        said = await call("get", what)
        assert "no solver has ever led in cluster local" in said.stderr
    claim = EpochClaimed(cluster=CLUSTER, epoch=1, holder="one", lease_s=5)
    await bus.publish(Outgoing.of(FENCE, claim))
    assert (await call("explain", "train")).stderr == ""
    said = await call("get", "gangs", "--cluster", "locla")
    assert (said.returncode, "did you mean local?" in said.stderr) == (3, True)
    said = await call(*submit, "--cluster", "locla")
    assert (said.returncode, "did you mean local?" in said.stderr) == (3, True)
    said = await call("get", "devices", "--cluster", "locla")
    assert (said.returncode, "did you mean local?" in said.stderr) == (3, True)
    said = await call("get", "devices", "--node", "nosuch")
    assert (said.returncode, "no node named 'nosuch'" in said.stderr) == (3, True)
