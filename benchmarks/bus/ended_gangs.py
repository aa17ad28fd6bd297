"""A start on a bus that still holds what every gang of the past left behind.

Each ended gang left a submission, a command, a decision and a confirmation. A row is a
process: seconds from its start until it could work (the solver leads, the publisher has
read all decisions), its own processor time by then, and its resident memory at its
highest.
500,000 past gangs; small: 20,000. To reach: 60 s and 600 MiB a process.

    python -m benchmarks.bus.ended_gangs [--size full] [--json FILE]
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bus.stack import START_LIMIT_S, fill, solver
from benchmarks.report import Row, arguments, cpu_seconds, report
from benchmarks.worlds.fleets import CLUSTER, uniform
from contracts import topics
from contracts.gang import Gang
from contracts.ids import GangUID, Namespace
from contracts.messages import (
    ClaimsReleased,
    GangReleased,
    ReleaseGang,
    ReleaseOutcome,
    SubmitGang,
)
from moorings.local.nats_server import open_local_nats
from runtime.bus.bus import Bus
from runtime.wire import BusSettings, Outgoing
from tests.builders import gang, member, member_claim, request

TEAM = Namespace("team-a")
TOGETHER = 5_000
_SYNCED = re.compile(r'"stream": "DEC".*"event": "stream\.synced"')
"""A line of the log, whose keys are in this order."""


def past(number: int) -> Iterator[Outgoing]:
    """Make what one gang left behind."""
    uid = GangUID(f"00000000-0000-4000-8000-{number:012}")
    asked: Gang = gang(
        member(member_claim(request(count=1))), name=f"g{number}", uid=uid
    )
    submission = SubmitGang(cluster=CLUSTER, uid=uid, gang=asked)
    yield Outgoing.of(topics.SUBMISSIONS, submission)
    released = ReleaseGang(cluster=CLUSTER, namespace=TEAM, uid=uid)
    yield Outgoing.of(topics.COMMANDS, released)
    over = GangReleased(
        cluster=CLUSTER,
        namespace=TEAM,
        uid=uid,
        name=f"g{number}",
        epoch=1,
        outcome=ReleaseOutcome.COMPLETED,
    )
    yield Outgoing.of(topics.DECISIONS, over)
    confirmed = ClaimsReleased(cluster=CLUSTER, namespace=TEAM, uid=uid)
    yield Outgoing.of(topics.CONFIRMATIONS, confirmed)


def highest_mib(pid: int) -> int:
    """Read the most memory that a process has had."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) // 1024


async def folder_publisher(url: str, folder: Path) -> Row:
    """Start the publisher without a cluster, until it has read everything."""
    log = folder / "publisher.log"
    started = time.perf_counter()
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: ASYNC220  # a process of its own
            [sys.executable, "-m", "publisher"],
            env={
                **os.environ,
                "PUBLISHER_SERVERS": url,
                "PUBLISHER_FOLDER": str(folder / "manifests"),
                "PUBLISHER_PUBLISH_SLICES": "false",
            },
            stdout=file,
            stderr=file,
        )
    try:
        async with asyncio.timeout(START_LIMIT_S):
            # Its log is all that tells.
            while not _SYNCED.search(log.read_text()):
                assert process.poll() is None, f"the publisher ended: see {log}"
                await asyncio.sleep(0.1)  # a file has no event
        seconds = time.perf_counter() - started
        return {
            "process": "publisher, folder",
            "start s": seconds,
            "cpu s": cpu_seconds(process.pid),
            "highest MiB": highest_mib(process.pid),
        }
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait)


async def run(gangs: int) -> list[Row]:
    """Fill a server, then start each process on it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with open_local_nats(folder / "nats") as url:
            settings = BusSettings(servers=(url,), name="benchmark")
            async with Bus.open(settings) as bus:
                await bus.wait_connected(10)
                await bus.ensure_streams()
                await fill(bus, uniform(100))
                for first in range(0, gangs, TOGETHER):
                    numbers = range(first, min(gangs, first + TOGETHER))
                    messages = [message for n in numbers for message in past(n)]
                    await bus.publish_many(messages)
                async with solver(bus, url, folder / "solver.log") as started:
                    row: Row = {
                        "process": "solver",
                        "start s": started.start_s,
                        "cpu s": cpu_seconds(started.pid),
                        "highest MiB": highest_mib(started.pid),
                    }
                rows = [row, await folder_publisher(url, folder)]
                return [{"past gangs": gangs, **row} for row in rows]


def main() -> None:
    """Measure."""
    options = arguments(__doc__ or "")
    gangs = 20_000 if options.size == "small" else 500_000
    report("ended_gangs", options, asyncio.run(run(gangs)))


if __name__ == "__main__":
    main()
