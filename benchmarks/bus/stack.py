"""A real nats-server with a fleet on it, and a solver process of its own.

The server waits for its disk as those of k8s/base do, unless told otherwise.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from benchmarks.worlds.fleets import CLUSTER, observed_class
from contracts import topics
from contracts.messages import DevicesAnnounced, HealthJudged
from moorings.local.nats_server import open_local_nats
from runtime.bus.bus import Bus
from runtime.wire import BusSettings, Outgoing

START_LIMIT_S = 300.0


class Stack(Struct):
    """What a benchmark talks to."""

    bus: Bus
    pid: int
    """Of the solver."""
    start_s: float
    """From its start, all inventories on the bus already, until it led."""


@asynccontextmanager
async def stack(
    fleet: Sequence[DevicesAnnounced], *, sync: str = "always"
) -> AsyncIterator[Stack]:
    """Run server and solver with this fleet; nodes need no heartbeats.

    `sync`: the server's `sync_interval`.
    """
    with tempfile.TemporaryDirectory() as folder:
        async with open_local_nats(Path(folder), sync=sync) as url:
            settings = BusSettings(servers=(url,), name="benchmark")
            async with Bus.open(settings) as bus:
                await bus.wait_connected(10)
                await bus.ensure_streams()
                await fill(bus, fleet)
                async with solver(bus, url, Path(folder) / "solver.log") as started:
                    yield started


@asynccontextmanager
async def solver(
    bus: Bus, url: str, log: Path, **variables: str
) -> AsyncIterator[Stack]:
    """Run a solver and wait until one leads."""
    started = time.perf_counter()
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: ASYNC220  # a process of its own
            [sys.executable, "-m", "solver"],
            env={
                **os.environ,
                "SOLVER_SERVERS": url,
                "SOLVER_HEARTBEAT_GRACE_S": "100000",
                **variables,
            },
            stdout=file,
            stderr=file,
        )
    try:
        await _leads(bus, process, log)
        yield Stack(bus, process.pid, time.perf_counter() - started)
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait)


async def _leads(bus: Bus, process: subprocess.Popen[bytes], log: Path) -> None:
    subject = topics.FENCE.subject(CLUSTER)
    async with asyncio.timeout(START_LIMIT_S):
        while await bus.last("DEC", subject) is None:  # the bus has no event for it
            assert process.poll() is None, f"the solver ended: see {log}"
            await asyncio.sleep(0.01)


async def fill(bus: Bus, fleet: Iterable[DevicesAnnounced]) -> None:
    """Put a fleet and its class on the bus."""
    await bus.publish_many([inventory(message) for message in fleet])
    device_class = observed_class()
    subject = topics.STATE.subject(CLUSTER, device_class.kind, device_class.key)
    data = topics.STATE.codec.encode(device_class)
    await bus.publish(Outgoing(subject=subject, data=data, zstd=True))


def inventory(message: DevicesAnnounced) -> Outgoing:
    """Address an inventory."""
    subject = topics.INVENTORIES.subject(CLUSTER, message.node)
    return Outgoing(
        subject=subject, data=topics.INVENTORIES.codec.encode(message), zstd=True
    )


def health(message: HealthJudged) -> Outgoing:
    """Address what is not healthy on a node."""
    subject = topics.HEALTH.subject(CLUSTER, message.node)
    return Outgoing(subject=subject, data=topics.HEALTH.codec.encode(message))


def memory_mib(pid: int) -> dict[str, int]:
    """Measure resident memory: the solver's, and its children's together."""
    own = children = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = status.read_text().splitlines()
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        size = int(fields.get("VmRSS", "0 kB").split()[0])
        if fields["Pid"].strip() == str(pid):
            own = size
        elif fields["PPid"].strip() == str(pid):
            children += size
    return {"solver MiB": own // 1024, "worker + sandbox MiB": children // 1024}
