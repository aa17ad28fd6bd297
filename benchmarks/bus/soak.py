"""A cluster that never rests: does the solver keep its speed and its memory?

10,000 nodes of 8 GPUs (small: 1,000). Inventories and verdicts on health change, 100
nodes at a time, 100,000 changes in all (small: 5,000); after each hundred a gang of
one pod is submitted, decided and released. A row is a slice of the changes: how long
they took, the probes' seconds from submission to decision, and memory.

    python -m benchmarks.bus.soak [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio
import random
import time

from benchmarks.bus.client import Client, client
from benchmarks.bus.stack import health, inventory, memory_mib, stack
from benchmarks.report import Row, arguments, percentile, report
from benchmarks.solver.incremental import changed
from benchmarks.worlds.fleets import CLUSTER, submission, uniform
from contracts.device import DeviceTaint
from contracts.ids import DeviceID
from contracts.messages import DeviceHealth, DevicesAnnounced, HealthJudged
from runtime.bus.bus import Bus
from runtime.wire import Outgoing

TOGETHER = 100
TAINT = DeviceTaint(key="moorings.dev/health", value="Unhealthy", effect="NoExecute")


def judged(message: DevicesAnnounced, draw: random.Random) -> HealthJudged:
    """Find a random device of a node ill, or none."""
    pool = message.pools[0]
    device = draw.choice(pool.devices)
    name = DeviceID(pool.driver, pool.name, device.name)
    ill = DeviceHealth(device=name, verdict="Unhealthy", taints=(TAINT,))
    devices = (ill,) if draw.random() < 0.5 else ()
    return HealthJudged(cluster=CLUSTER, node=message.node, devices=devices)


def change(message: DevicesAnnounced, draw: random.Random) -> Outgoing:
    """Change what a node has, or what is well of it."""
    if draw.random() < 0.5:
        return inventory(changed(message, draw))
    return health(judged(message, draw))


async def probe(gangs: Client, number: int, draw: random.Random) -> float:
    """Submit a gang, wait for its decision, release it; gives the seconds."""
    gang = submission(number, draw, most_pods=1)
    await gangs.submit(gang)
    seconds = await gangs.answered(gang.uid)
    await gangs.release(gang.uid)
    await gangs.over(gang.uid)
    return seconds


async def measure(
    bus: Bus, pid: int, fleet: list[DevicesAnnounced], changes: int, seed: int
) -> list[Row]:
    """Change nodes and probe; a row for each tenth of the changes."""
    draw, rows = random.Random(seed), list[Row]()
    rounds = changes // TOGETHER // 10
    async with client(bus) as gangs:
        for part in range(10):
            started, seconds = time.perf_counter(), list[float]()
            for number in range(part * rounds, (part + 1) * rounds):
                nodes = draw.sample(fleet, TOGETHER)
                await bus.publish_many([change(node, draw) for node in nodes])
                seconds.append(await probe(gangs, number + 1, draw))
            rows.append(
                {
                    "nodes": len(fleet),
                    "changes": (part + 1) * rounds * TOGETHER,
                    "slice s": time.perf_counter() - started,
                    "p50 ms": percentile(seconds, 0.5) * 1000,
                    "p99 ms": percentile(seconds, 0.99) * 1000,
                    **memory_mib(pid),
                }
            )
    return rows


async def run(nodes: int, changes: int, seed: int) -> list[Row]:
    """Measure one size of cluster."""
    fleet = uniform(nodes)
    async with stack(fleet) as solver:
        return await measure(solver.bus, solver.pid, fleet, changes, seed)


def main() -> None:
    """Measure."""
    options = arguments(__doc__ or "")
    size = (1_000, 5_000) if options.size == "small" else (10_000, 100_000)
    report("soak", options, asyncio.run(run(*size, options.seed)))


if __name__ == "__main__":
    main()
