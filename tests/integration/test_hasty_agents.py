"""An agent that always says something new slows nobody, and its last word counts."""

from __future__ import annotations

from pathlib import Path

from contracts import topics
from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced, GangAllocated
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests.builders import device, pool
from tests.lab.nats_server import LabServer
from tests.lab.services import CLUSTER, eventually, running, solver, submit
from tests.lab.two_nodes import is_decided, two_nodes, wanted

HASTY = NodeName("hasty")


def said(number: int, count: int) -> Outgoing:
    """Announce a node whose devices have another attribute each time."""
    content = (device(f"gpu-{i}", attributes={"n": str(number)}) for i in range(count))
    message = DevicesAnnounced(
        cluster=CLUSTER, node=HASTY, pools=(pool(*content, name=HASTY),)
    )
    return Outgoing.of(topics.INVENTORIES, message)


async def test_messages_beyond_the_rate_are_passed_over_but_for_the_last(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """It alone has enough devices for the gang."""
    await two_nodes(bus)
    process = solver(nats_server.url, tmp_path)
    async with running(process):
        first = wanted(1)
        await submit(bus, first)
        await eventually(lambda: is_decided(bus, first, GangAllocated), "it decides")
        for number in range(200):
            await bus.publish(said(number, 1))
        await bus.publish(said(200, 9))
        asked = wanted(2, count=9)
        await submit(bus, asked)
        await eventually(lambda: is_decided(bus, asked, GangAllocated), "it is in")

        async def told() -> bool:
            return '"messages.passed_over"' in process.log()

        await eventually(told, "it is told")
    assert topics.INVENTORIES.subject(CLUSTER, HASTY) in process.log()
