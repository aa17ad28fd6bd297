"""Broken messages of every kind on a real bus: a real solver goes on, and starts again.

So do the commands that look. More of them are read in `test_broken_inputs.py`: here a
message that is right by luck, such as a taint of all devices, may be believed.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from random import Random

from msgspec import structs

from contracts.ids import NodeName
from contracts.messages import (
    DecisionMessage,
    DevicesAnnounced,
    GangAllocated,
    NodeSeen,
    ObjectObserved,
)
from contracts.topics import HEARTBEATS, STATE
from runtime.bus.bus import Bus
from runtime.errors import BusError
from runtime.wire import Outgoing
from tests import builders
from tests.lab.broken_readers import BrokenMessage
from tests.lab.command_line import moorings
from tests.lab.controlplane import objects
from tests.lab.nats_server import LabServer
from tests.lab.services import (
    CLUSTER,
    announce,
    decision_on,
    eventually,
    observe_class,
    running,
    solver,
    submit,
)
from tests.lab.soak import sized

COUNT = sized(100, 2_000)
SEED = os.environ.get("MOORINGS_SEED", "36")
GOOD = NodeName("node-good")


async def send_broken(bus: Bus, numbers: range) -> int:
    """Send what a stream takes; returns how much that was."""
    sent = 0
    for number in numbers:
        broken = BrokenMessage(Random(f"{SEED}-{number}"))
        message = Outgoing(
            subject=broken.topic.subject(*broken.names),
            data=broken.data,
            headers=broken.headers,
        )
        with suppress(BusError):  # a subject that was written once, or too many bytes
            await bus.publish(message)
            sent += 1
    return sent


async def observe_node(bus: Bus) -> None:
    """Put the good node on the bus: one of another name may be believed."""
    node = objects.node(GOOD)
    message = ObjectObserved(cluster=CLUSTER, kind="Node", key=GOOD, object=node)
    await bus.publish(Outgoing.of(STATE, message))


async def beat(bus: Bus) -> None:
    """Say that the good node's agent is alive, for as long as anybody asks."""
    while True:
        seen = NodeSeen(cluster=CLUSTER, node=GOOD)
        with suppress(BusError):
            await bus.publish(Outgoing.of(HEARTBEATS, seen))
        await asyncio.sleep(1.0)


async def decide_one(bus: Bus, number: int) -> None:
    """Submit a gang that has a device, and wait for it."""
    uid = f"00000000-0000-4000-8000-{number:012}"
    gang = builders.gang(
        builders.member(builders.member_claim(builders.request())), uid=uid
    )
    metadata = structs.replace(gang.metadata, name=f"good-{number}")
    gang = structs.replace(gang, metadata=metadata)
    await submit(bus, gang)

    decision: DecisionMessage | None = None

    async def is_allocated() -> bool:
        nonlocal decision
        decision = await decision_on(bus, gang)
        return isinstance(decision, GangAllocated)

    await eventually(is_allocated, lambda: f"gang {number} has a device: {decision}")


async def test_a_solver_goes_on_and_starts_again_among_broken_messages(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    process = solver(nats_server.url, tmp_path)
    pool = builders.pool(*builders.devices(4), name=GOOD)
    good = DevicesAnnounced(cluster=CLUSTER, node=GOOD, pools=(pool,))
    async with running(process):
        await announce(bus, good)
        await observe_class(bus)
        await observe_node(bus)
        beating = asyncio.create_task(beat(bus))
        await decide_one(bus, 1)
        assert await send_broken(bus, range(COUNT // 2)) > COUNT // 4
        await decide_one(bus, 2)
        process.kill()
        assert await send_broken(bus, range(COUNT // 2, COUNT))
        process.start()
        await decide_one(bus, 3)
        assert process.is_alive
        assert "message.failed" not in process.log()
        beating.cancel()
    for what in ("nodes", "devices", "gangs"):
        answer = await asyncio.to_thread(
            moorings, "get", what, home=tmp_path, server=nats_server.url
        )
        assert answer.returncode == 0, answer.stderr
