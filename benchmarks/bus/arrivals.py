"""Gangs come and go on a cluster that is nearly full: is anything lost, late or leaked?

1,000 nodes of 8 GPUs, filled to 90 % first. Then 50 gangs of 1-8 pods a second, and
for each that comes a random one goes while more than 90 % are held: 30 seconds, or 10
minutes. A row is a slice of that time: seconds from a gang's submission to its first
decision, gangs not answered yet, gangs that hold nothing and are not over, memory. The
last row is the whole run, a minute after its end at most: unanswered means lost there.

    python -m benchmarks.bus.arrivals [--size full] [--sync 2m] [--json FILE]
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time

from benchmarks.bus.client import Client, client
from benchmarks.bus.stack import Stack, memory_mib, stack
from benchmarks.report import Row, parser, percentile, report
from benchmarks.worlds.fleets import submission, uniform
from contracts.ids import GangUID

NODES, DEVICES_EACH = 1_000, 8
FULL = NODES * DEVICES_EACH * 9 // 10
RATE = 50
PATIENCE_S = 60.0


class Arrivals:
    """One run: who comes, who goes, what is seen of it."""

    def __init__(self, solver: Stack, gangs: Client, seed: int) -> None:
        self._solver = solver
        self._gangs = gangs
        self._draw = random.Random(seed)
        self._number = 0
        self._started = 0.0

    async def fill(self) -> None:
        """Submit until the cluster is nearly full."""
        while sum(self._gangs.holding.values()) < FULL:
            await self._gangs.answered(await self._arrive())

    async def _arrive(self) -> GangUID:
        self._number += 1
        gang = submission(self._number, self._draw)
        await self._gangs.submit(gang)
        return gang.uid

    async def run(self, seconds: float, slices: int) -> list[Row]:
        """Let gangs come and go; a row a slice, and one for all."""
        rows: list[Row] = []
        every = list[GangUID]()
        self._started = time.perf_counter()
        for part in range(slices):
            end_s = seconds * (part + 1) / slices
            uids = await self._slice(end_s)
            every.extend(uids)
            rows.append({"until s": end_s, **self._row(uids)})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                for uid in every:
                    await self._gangs.answered(uid)
        return [*rows, {"until s": "all", **self._row(every)}]

    async def _slice(self, end_s: float) -> list[GangUID]:
        """Submit at the given rate until then, late ones at once."""
        uids = list[GangUID]()
        due_s = time.perf_counter() - self._started
        while due_s < end_s:
            ahead_s = self._started + due_s - time.perf_counter()
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)
            uids.append(await self._arrive())
            await self._depart()
            due_s += 1 / RATE
        return uids

    async def _depart(self) -> None:
        holding = self._gangs.holding
        while sum(holding.values()) > FULL:
            await self._gangs.release(self._draw.choice(list(holding)))

    def _row(self, uids: list[GangUID]) -> Row:
        seconds_of = self._gangs.seconds
        seconds = [seconds_of[uid] for uid in uids if uid in seconds_of] or [0.0]
        return {
            "gangs": len(uids),
            "p50 ms": percentile(seconds, 0.5) * 1000,
            "p99 ms": percentile(seconds, 0.99) * 1000,
            "max ms": max(seconds) * 1000,
            "unanswered": sum(uid not in seconds_of for uid in uids),
            "waiting": self._gangs.waiting,
            "held": sum(self._gangs.holding.values()),
            "released": len(self._gangs.released),
            **memory_mib(self._solver.pid),
        }


async def run(seconds: float, slices: int, seed: int, sync: str) -> list[Row]:
    """Measure, on a server with this `sync_interval`."""
    fleet = uniform(NODES)
    async with stack(fleet, sync=sync) as solver, client(solver.bus) as gangs:
        arrivals = Arrivals(solver, gangs, seed)
        await arrivals.fill()
        return await arrivals.run(seconds, slices)


def main() -> None:
    """Measure half a minute, or ten."""
    reading = parser(__doc__ or "")
    reading.add_argument("--sync", default="always", help="nats-server's sync_interval")
    options = reading.parse_args()
    seconds, slices = (30.0, 3) if options.size == "small" else (600.0, 10)
    rows = asyncio.run(run(seconds, slices, options.seed, options.sync))
    report("arrivals", options, rows)


if __name__ == "__main__":
    main()
