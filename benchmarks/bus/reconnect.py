"""NATS restarts under a fleet: until every node has announced anew.

10,000 nodes of 8 GPUs (small: 500) by 4 node agents. The server is killed and started
again on its folder; agents reconnect and say everything again. Seconds: until all nodes
had announced at first, after a restart of all agents (each reads back what was sent
before, which is the same), and after the server's restart, inventories and health.
Attempts that failed meanwhile are counted from the agents' logs; each is made again. To
reach: 10 s after the server's restart.

    python -m benchmarks.bus.reconnect [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.bus.stack import START_LIMIT_S
from benchmarks.report import Row, arguments, report
from contracts.streams import STREAMS
from contracts.topics import HEALTH, INVENTORIES
from runtime.bus.bus import Bus
from runtime.errors import BusError
from runtime.wire import BusSettings
from tests.lab.nats_server import LabServer
from tests.lab.services import Process, running

AGENTS = 4
EVERY_S = 0.05
FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: agents
nodes:
- shape: {shape}
  count: {count}
  devices:
  - {{driver: gpu.example.com, count: 8, name: "gpu-{{index}}", numaNodes: 2}}
"""


def agent(url: str, folder: Path, number: int, nodes: int) -> Process:
    """Make an agent of some nodes; streams are there already."""
    fleet = folder / f"fleet-{number}.yaml"
    fleet.write_text(FLEET.format(shape=f"a{number}", count=nodes))
    return Process(
        "nodeagent",
        folder / f"agent-{number}.log",
        NODEAGENT_SERVERS=url,
        NODEAGENT_FLEET=str(fleet),
    )


async def until(holds: Callable[[], Awaitable[bool]]) -> float:
    """Wait until something holds; gives the seconds that took."""
    began = time.perf_counter()
    async with asyncio.timeout(START_LIMIT_S):
        while not await holds():  # noqa: ASYNC110  # the bus has no event for it
            await asyncio.sleep(EVERY_S)
    return time.perf_counter() - began


class Announced:
    """Which inventories and health the bus holds."""

    def __init__(self, bus: Bus, nodes: int) -> None:
        self._bus = bus
        self._nodes = nodes
        self._behind = {INVENTORIES.stream: 0, HEALTH.stream: 0}

    async def note(self) -> None:
        """What is there now does not count from now on."""
        for stream in self._behind:
            self._behind[stream] = (await self._bus.usage(stream)).last_sequence

    async def all(self) -> bool:
        """True if every node has said both since then: one message a subject."""
        try:
            for stream, behind in self._behind.items():
                found = await self._bus.usage(stream)
                if found.subjects < self._nodes or found.first_sequence <= behind:
                    return False
        except BusError:  # not connected again yet
            return False
        return True


def failed(agents: list[Process]) -> int:
    """Count the attempts to announce that failed."""
    return sum(a.log().count("announcement.failed") for a in agents)


async def measure(bus: Bus, server: LabServer, folder: Path, nodes: int) -> Row:
    """Start agents, restart them, restart the server."""
    url = server.url
    agents = [agent(url, folder, i, nodes // AGENTS) for i in range(AGENTS)]
    announced = Announced(bus, nodes)
    async with running(*agents):
        first_s = await until(announced.all)
        for one in agents:
            one.stop()
    began = time.perf_counter()
    async with running(*agents):

        async def recalled() -> bool:
            return all(a.log().count("announcements.recalled") == 2 for a in agents)

        await until(recalled)
        restarted_s = time.perf_counter() - began
        await announced.note()
        before = failed(agents)
        server.kill()
        await asyncio.to_thread(server.start)
        again_s = await until(announced.all)
        return {
            "nodes": nodes,
            "agents": AGENTS,
            "first announced s": first_s,
            "agents restarted s": restarted_s,
            "server restarted s": again_s,
            "failed and made again": failed(agents) - before,
        }


async def run(nodes: int) -> list[Row]:
    """Measure one size of fleet."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = LabServer(folder / "nats")
        server.start()
        try:
            settings = BusSettings(servers=(server.url,), name="benchmark")
            async with Bus.open(settings) as bus:
                await bus.wait_connected(10)
                await bus.ensure_streams(STREAMS)
                return [await measure(bus, server, folder, nodes)]
        finally:
            server.stop()


def main() -> None:
    """Measure."""
    options = arguments(__doc__ or "")
    nodes = 500 if options.size == "small" else 10_000
    report("reconnect", options, asyncio.run(run(nodes)))


if __name__ == "__main__":
    main()
