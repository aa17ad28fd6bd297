"""Broken messages of every kind on a real bus: a real solver goes on, and starts again.

So do the commands that look. 100 in `make test`, 2,000 in `make soak`.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from random import Random

from msgspec import structs

from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced
from runtime.bus.bus import Bus
from runtime.errors import BusError
from runtime.wire import Outgoing
from tests import builders
from tests.lab.broken_readers import BrokenMessage
from tests.lab.command_line import moorings
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


async def decide_one(bus: Bus, number: int) -> None:
    """Submit a gang that has a device, and wait for it."""
    uid = f"00000000-0000-4000-8000-{number:012}"
    gang = builders.gang(
        builders.member(builders.member_claim(builders.request())), uid=uid
    )
    metadata = structs.replace(gang.metadata, name=f"good-{number}")
    gang = structs.replace(gang, metadata=metadata)
    await submit(bus, gang)

    async def is_allocated() -> bool:
        return type(await decision_on(bus, gang)).__name__ == "GangAllocated"

    await eventually(is_allocated, f"gang {number} has a device")


async def test_a_solver_goes_on_and_starts_again_among_broken_messages(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    process = solver(nats_server.url, tmp_path)
    pool = builders.pool(*builders.devices(4), name=GOOD)
    good = DevicesAnnounced(cluster=CLUSTER, node=GOOD, pools=(pool,))
    async with running(process):
        await announce(bus, good)
        await observe_class(bus)
        await decide_one(bus, 1)
        assert await send_broken(bus, range(COUNT // 2)) > COUNT // 4
        await decide_one(bus, 2)
        process.kill()
        assert await send_broken(bus, range(COUNT // 2, COUNT))
        process.start()
        await decide_one(bus, 3)
        assert process.is_alive
        assert "message.failed" not in process.log()
    for what in ("nodes", "devices", "gangs"):
        answer = await asyncio.to_thread(
            moorings, "get", what, home=tmp_path, server=nats_server.url
        )
        assert answer.returncode == 0, answer.stderr
