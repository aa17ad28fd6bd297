"""Submit to decision over a real bus, idle, and what the solver costs meanwhile.

For 100 and 1,213 GPU nodes of the openb fleet, and for all of it: the solver is a
process of its own, on a real nats-server; gangs of 1-8 pods are submitted one at a
time. One gang for every 20 nodes stays; each later one is released after its decision.
Also its start with the whole inventory on the bus (first fence claimed, all pages
recorded), and its memory with the worker's.

    python -m benchmarks.decisions [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Row, arguments, percentile, report
from benchmarks.worlds import CLUSTER, inventories, observed_class, submission
from contracts import messages, subjects
from contracts.ids import Namespace
from contracts.messages import DevicesAnnounced, GangAllocated, GangReleased
from contracts.process.bus import Bus, BusSettings, Outgoing
from moorings.nats import local_nats

NAMESPACE = Namespace("bench")


async def fill(bus: Bus, fleet: list[DevicesAnnounced]) -> None:
    """Put a fleet and its class on the bus."""
    await bus.publish_many(
        [
            Outgoing(
                subject=subjects.inventory(CLUSTER, message.node),
                data=messages.INVENTORY.encode(message),
                zstd=True,
            )
            for message in fleet
        ]
    )
    seen = observed_class()
    subject = subjects.state(CLUSTER, seen.kind, seen.key)
    data = messages.STATE.encode(seen)
    await bus.publish(Outgoing(subject=subject, data=data, zstd=True))


async def ready(bus: Bus) -> None:
    """Wait until a solver leads."""
    while await bus.last("DEC", subjects.fence(CLUSTER)) is None:  # noqa: ASYNC110  # the bus has no event for it
        await asyncio.sleep(0.01)


async def measure(
    bus: Bus, count: int, kept: int, seed: int
) -> tuple[list[float], dict[str, int]]:
    """Submit gangs one at a time; seconds of each, and what was decided."""
    draw, stop = random.Random(seed), asyncio.Event()
    decided: asyncio.Queue[tuple[object, float]] = asyncio.Queue()
    pattern = subjects.wildcard("dec", CLUSTER)

    async def follow() -> None:
        async for page in bus.follow("DEC", [pattern], stop, start="new"):
            for received in page.messages:
                message = messages.DECISION.decode(received.data)
                decided.put_nowait((message, time.perf_counter()))

    follower = asyncio.create_task(follow())
    await asyncio.sleep(0.5)
    seconds, verdicts = [], {"allocated": 0, "pending": 0}
    for number in range(1, count + 1):
        asked = submission(number, draw)
        subject = subjects.submit(CLUSTER, NAMESPACE, asked.uid)
        data = messages.SUBMISSION.encode(asked)
        started = time.perf_counter()
        await bus.publish(Outgoing(subject=subject, data=data))
        answer, ended = await decided.get()
        seconds.append(ended - started)
        allocated = isinstance(answer, GangAllocated)
        verdicts["allocated" if allocated else "pending"] += 1
        command = messages.ReleaseGang(
            cluster=CLUSTER, namespace=NAMESPACE, uid=asked.uid
        )
        subject = subjects.command(CLUSTER, NAMESPACE, asked.uid)
        data = messages.COMMAND.encode(command)
        if number > kept or not allocated:
            await bus.publish(Outgoing(subject=subject, data=data))
            released, _ = await decided.get()
            assert isinstance(released, GangReleased)
    stop.set()
    await follower
    return seconds, verdicts


def memory_mib(pid: int) -> int:
    """Add up the resident memory of a process and its children."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(
                line.split(":", 1)
                for line in status.read_text().splitlines()
                if ":" in line
            )
        except OSError:
            continue
        if str(pid) in (fields["Pid"].strip(), fields["PPid"].strip()):
            total += int(fields.get("VmRSS", "0 kB").split()[0])
    return total // 1024


async def run(gpu_nodes: int | None, count: int, seed: int) -> Row:
    """Measure one size of fleet."""
    fleet = inventories(gpu_nodes)
    with tempfile.TemporaryDirectory() as folder:
        async with local_nats(Path(folder)) as url:
            settings = BusSettings(servers=(url,), name="benchmark")
            async with Bus.open(settings) as bus:
                await bus.wait_connected(10)
                await bus.ensure_streams()
                await fill(bus, fleet)
                started = time.perf_counter()
                with (Path(folder) / "solver.log").open("wb") as log:
                    process = subprocess.Popen(  # noqa: ASYNC220  # a solver of its own
                        [sys.executable, "-m", "solver"],
                        env={
                            **os.environ,
                            "SOLVER_SERVERS": url,
                            "SOLVER_HEARTBEAT_GRACE_S": "100000",
                        },
                        stdout=log,
                    )
                try:
                    await ready(bus)
                    start = time.perf_counter() - started
                    seconds, verdicts = await measure(
                        bus, count, len(fleet) // 20, seed
                    )
                    memory = memory_mib(process.pid)
                finally:
                    process.send_signal(signal.SIGTERM)
                    process.wait()
    return {
        "nodes": len(fleet),
        "gangs": count,
        **verdicts,
        "p50 ms": percentile(seconds, 0.5) * 1000,
        "p99 ms": percentile(seconds, 0.99) * 1000,
        "max ms": max(seconds) * 1000,
        "start s": start,
        "solver + worker + sandbox MiB": memory,
    }


def main() -> None:
    """Measure all sizes."""
    options = arguments(__doc__ or "")
    count = 100 if options.size == "small" else 1000
    rows = [asyncio.run(run(nodes, count, options.seed)) for nodes in (100, 1213, None)]
    report("decisions", options, rows)


if __name__ == "__main__":
    main()
