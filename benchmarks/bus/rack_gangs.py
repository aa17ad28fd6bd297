"""Submit to decision over a real bus of gangs that are bound to a rack, on idle nodes.

Nodes of 8 GPUs, 16 to a rack. The solver is a process of its own, on a real
nats-server; gangs of 8 pods x 8 GPUs in one rack are submitted one at a time, and
each is released after its decision. The first answer is cold and told apart.

    python -m benchmarks.bus.rack_gangs [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio

from benchmarks.bus.client import client
from benchmarks.bus.stack import stack
from benchmarks.report import Row, arguments, percentile, report
from benchmarks.worlds.objects import observed_class
from benchmarks.worlds.topology import GPU, in_rack, list_nodes
from contracts import topics
from contracts.messages import ObjectObserved
from runtime.bus.bus import Bus
from runtime.wire import Outgoing


async def observe(bus: Bus, *objects: ObjectObserved) -> None:
    """Put objects of Kubernetes on the bus."""
    await bus.publish_many(
        [
            Outgoing(
                subject=topics.STATE.subject(each.cluster, each.kind, each.key),
                data=topics.STATE.codec.encode(each),
                zstd=True,
            )
            for each in objects
        ]
    )


async def run(nodes: int, count: int) -> Row:
    """Measure one size."""
    seconds, allocated = list[float](), 0
    listed = list(list_nodes(nodes))
    async with stack([inventory for inventory, _ in listed]) as solver:
        device_class = observed_class(GPU, f'device.driver == "{GPU}"')
        await observe(solver.bus, device_class, *(node for _, node in listed))
        async with client(solver.bus) as gangs:
            for number in range(1, count + 1):
                gang = in_rack(number)
                await gangs.submit(gang)
                seconds.append(await gangs.answered(gang.uid))
                allocated += gang.uid in gangs.holding
                await gangs.release(gang.uid)
                await gangs.over(gang.uid)
    first, *again = seconds
    return {
        "nodes": nodes,
        "gangs": count,
        "allocated": allocated,
        "first ms": first * 1e3,
        "p50 ms": percentile(again, 0.5) * 1e3,
        "p99 ms": percentile(again, 0.99) * 1e3,
        "max ms": max(again) * 1e3,
    }


def main() -> None:
    """Measure small and large."""
    options = arguments(__doc__ or "")
    sizes = {"small": (256, 20), "full": (1_523, 100)}
    report("rack_gangs", options, [asyncio.run(run(*sizes[options.size]))])


if __name__ == "__main__":
    main()
