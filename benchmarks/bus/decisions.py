"""Submit to decision over a real bus, idle, and what the solver costs meanwhile.

For 100 and 1,213 GPU nodes of the openb fleet, for all of it, and for 10,000 nodes of
8 GPUs: the solver is a process of its own, on a real nats-server; gangs of 1-8 pods
(on the 10,000 nodes: one pod) are submitted one at a time. One gang for every 20
nodes stays; each later one is released after its decision. Also its start with the
whole inventory on the bus (first fence claimed, all pages recorded), and its memory.

    python -m benchmarks.bus.decisions [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from benchmarks.bus.client import client
from benchmarks.bus.stack import memory_mib, stack
from benchmarks.report import Row, arguments, percentile, report
from benchmarks.worlds.fleets import inventories, submission, uniform
from contracts.messages import DevicesAnnounced
from runtime.bus.bus import Bus


async def measure(
    bus: Bus, count: int, kept: int, drawing: tuple[int, int]
) -> tuple[list[float], int]:
    """Submit gangs one at a time; seconds of each, and how many were allocated.

    `drawing`: the seed, and the most pods of a gang.
    """
    seed, most_pods = drawing
    draw, seconds, allocated = random.Random(seed), list[float](), 0
    async with client(bus) as gangs:
        for number in range(1, count + 1):
            gang = submission(number, draw, most_pods=most_pods)
            await gangs.submit(gang)
            seconds.append(await gangs.answered(gang.uid))
            is_in = gang.uid in gangs.holding
            allocated += is_in
            if number > kept or not is_in:
                await gangs.release(gang.uid)
                await gangs.over(gang.uid)
    return seconds, allocated


async def run(
    fleet: Sequence[DevicesAnnounced], count: int, seed: int, *, most_pods: int = 8
) -> Row:
    """Measure one fleet."""
    async with stack(fleet) as solver:
        kept = len(fleet) // 20
        seconds, allocated = await measure(solver.bus, count, kept, (seed, most_pods))
        memory = memory_mib(solver.pid)
    return {
        "nodes": len(fleet),
        "pods": f"1-{most_pods}" if most_pods > 1 else "1",
        "gangs": count,
        "allocated": allocated,
        "p50 ms": percentile(seconds, 0.5) * 1000,
        "p99 ms": percentile(seconds, 0.99) * 1000,
        "max ms": max(seconds) * 1000,
        "start s": solver.start_s,
        **memory,
    }


def main() -> None:
    """Measure all sizes."""
    options = arguments(__doc__ or "")
    count = 100 if options.size == "small" else 1000
    rows = [
        asyncio.run(run(inventories(nodes), count, options.seed))
        for nodes in (100, 1213, None)
    ]
    large = run(uniform(10_000), count, options.seed, most_pods=1)
    report("decisions", options, [*rows, asyncio.run(large)])


if __name__ == "__main__":
    main()
