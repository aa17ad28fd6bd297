"""A rolling update of the solver: how long is nothing decided?

10,000 nodes of 8 GPUs (small: 500) and a gang of one pod every 100 ms. A second solver
starts beside the one that leads; once it says that it is ready the first is asked to
end, as a Deployment does. Seconds: until the second is ready, and the longest time
between two decisions, before the hand-over and through it. To reach: 3 s.

    python -m benchmarks.bus.handover [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from benchmarks.bus.client import Client, client
from benchmarks.bus.stack import START_LIMIT_S, fill, solver
from benchmarks.report import Row, arguments, report
from benchmarks.worlds.fleets import submission, uniform
from moorings.local.nats_server import open_local_nats
from moorings.local.process import find_free_port
from runtime.bus.bus import Bus
from runtime.wire import BusSettings

EVERY_S = 0.1
BEFORE_S, AFTER_S = 10.0, 20.0


class Trickle:
    """Gangs that come one after the other, and when each was decided."""

    def __init__(self, gangs: Client, seed: int) -> None:
        self._gangs = gangs
        self._draw = random.Random(seed)
        self._answers = list[asyncio.Task[None]]()
        self.decided_at = list[float]()

    async def run(self, stop: asyncio.Event) -> None:
        """Submit until told to stop; each gang goes when it was decided."""
        while not stop.is_set():
            number = len(self._answers) + 1
            self._answers.append(asyncio.create_task(self._one(number)))
            await asyncio.sleep(EVERY_S)
        await asyncio.gather(*self._answers)

    async def _one(self, number: int) -> None:
        gang = submission(number, self._draw, most_pods=1)
        await self._gangs.submit(gang)
        await self._gangs.answered(gang.uid)
        self.decided_at.append(time.perf_counter())
        await self._gangs.release(gang.uid)

    def longest_gap_s(self, since: float, until: float) -> float:
        """Give the longest time between two decisions of a span."""
        inside = [at for at in self.decided_at if since <= at <= until]
        return max(b - a for a, b in itertools.pairwise([since, *inside, until]))


def is_ready(port: int) -> bool:
    """Ask a solver whether it could lead."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
    except (urllib.error.URLError, OSError):
        return False
    return True


async def measure(bus: Bus, url: str, folder: Path, seed: int) -> Row:
    """Hand over from one solver to the next."""
    port = find_free_port()
    async with (
        solver(bus, url, folder / "first.log") as first,
        client(bus) as gangs,
    ):
        trickle = Trickle(gangs, seed)
        started = time.perf_counter()
        address = {"SOLVER_HEALTH_ADDRESS": f"127.0.0.1:{port}"}
        async with solver(bus, url, folder / "second.log", **address):
            stop = asyncio.Event()
            submitting = asyncio.create_task(trickle.run(stop))
            async with asyncio.timeout(START_LIMIT_S):
                while not await asyncio.to_thread(is_ready, port):  # noqa: ASYNC110  # asked over HTTP
                    await asyncio.sleep(EVERY_S)
            ready_s = time.perf_counter() - started
            await asyncio.sleep(BEFORE_S)
            asked = time.perf_counter()
            os.kill(first.pid, signal.SIGTERM)
            await asyncio.sleep(AFTER_S)
            stop.set()
            await submitting
            return {
                "ready s": ready_s,
                "longest gap before s": trickle.longest_gap_s(asked - BEFORE_S, asked),
                "longest gap s": trickle.longest_gap_s(asked, asked + AFTER_S),
                "decided": len(trickle.decided_at),
            }


async def run(nodes: int, seed: int) -> list[Row]:
    """Measure one size of cluster."""
    with tempfile.TemporaryDirectory() as name:
        async with open_local_nats(Path(name) / "nats") as url:
            settings = BusSettings(servers=(url,), name="benchmark")
            async with Bus.open(settings) as bus:
                await bus.wait_connected(10)
                await bus.ensure_streams()
                await fill(bus, uniform(nodes))
                return [{"nodes": nodes, **await measure(bus, url, Path(name), seed)}]


def main() -> None:
    """Measure."""
    options = arguments(__doc__ or "")
    nodes = 500 if options.size == "small" else 10_000
    report("handover", options, asyncio.run(run(nodes, options.seed)))


if __name__ == "__main__":
    main()
