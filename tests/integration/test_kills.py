"""SIGKILL to anything at any moment: nothing accepted is lost, nothing given twice.

10 kills in `make test`, 500 in `make soak` (MOORINGS_SOAK=1).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from pathlib import Path

from moorings.bus_client import Client
from moorings.local.fleets import make_classes
from runtime.bus.bus import Bus
from runtime.wire import BusSettings
from tests.lab.endurance import FLEET, Asked, is_written
from tests.lab.nats_server import LabServer
from tests.lab.processes import children
from tests.lab.services import CLUSTER, Process, eventually, observe, running, solver
from tests.lab.soak import sized

KILLS = sized(10, 500)


class World:
    """Everything that runs, and what was asked of it."""

    def __init__(self, server: LabServer, folder: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.asked = Asked(self.draw)
        self.server = server
        self.folder = folder
        self.manifests = folder / "manifests"
        url = server.url
        self.solver = solver(url, folder)
        self.publisher = Process(
            "publisher",
            folder / "publisher.log",
            PUBLISHER_SERVERS=url,
            PUBLISHER_FOLDER=str(self.manifests),
        )
        self.agent = Process(
            "nodeagent",
            folder / "agent.log",
            NODEAGENT_SERVERS=url,
            NODEAGENT_FLEET=str(FLEET),
        )

    async def kill_something(self) -> str:
        """Kill one process, worker or server, and start it again."""
        victim = self.draw.choice(["solver", "worker", "publisher", "agent", "nats"])
        match victim:
            case "nats":
                await asyncio.to_thread(self.server.kill)
                await asyncio.sleep(self.draw.random() * 0.3)
                await asyncio.to_thread(self.server.start)
            case "worker":
                for pid in children(self.solver.pid)[:1]:
                    os.kill(pid, signal.SIGKILL)
            case _:
                process: Process = getattr(self, victim)
                process.kill()
                await asyncio.sleep(self.draw.random() * 0.3)
                process.start()
        return victim


async def test_nothing_is_lost_or_given_twice_whatever_is_killed(
    nats_server: LabServer, tmp_path: Path
) -> None:
    world = World(nats_server, tmp_path, seed=KILLS)
    asked = world.asked
    settings = BusSettings(servers=(nats_server.url,), name="test")
    async with Bus.open(settings) as bus:
        await bus.wait_connected(10)
        await bus.ensure_streams()
        for item in make_classes(FLEET):
            await observe(bus, item)
        async with running(world.agent, world.publisher, world.solver):
            victims: Counter[str] = Counter()
            for _ in range(KILLS):
                await asked.submit_some(bus)
                await asked.end_some(bus)
                await asyncio.sleep(world.draw.random() * 0.5)
                victims[await world.kill_something()] += 1
                await bus.wait_connected(20)
            client = Client(bus, CLUSTER)
            await eventually(lambda: asked.settled(client), "all is settled", 60)
            asked.check()
            await eventually(
                lambda: is_written(world.manifests, asked.records), "all is on disk", 30
            )
    assert len(victims) >= 4
    assert len(asked.accepted) >= KILLS
