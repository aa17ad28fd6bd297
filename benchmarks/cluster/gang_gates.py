"""How long from the creation of a gang's pods until all its gates are open?

One gang of pods of one device each, claims from a template: etcd, API server,
controller manager, scheduler, NATS, solver, publisher and this observer on one machine.
Seconds since the first pod was sent until the last pod or claim was seen at each point:

  created    all pods                      decided    the solver's answer is on the bus
  claimed    claims made by Kubernetes'    allocated  every claim, by the publisher
             controller manager            open       every gate, by the publisher
  prepared   finalizers on all claims      bound      every pod, by kube-scheduler
  submitted  the gang is on the bus

`bare loop` has no Moorings: when all claims are prepared, the same patches of the same
objects are sent by a loop with as many in flight. `by claims` is how much of the time
to open gates was over when the controller manager had made the last claim. `gates/s`
is pods by the seconds from the decision (the start of the loop) to the last open gate,
`share` that of the loop's in the same round. Then: processor seconds of each process
from the start to open gates (and how many processors others had: 2.0 would be all of
two), and requests that write, a pod.

    python -m benchmarks.cluster.gang_gates [--size full] [--pods N] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from benchmarks.cluster import bare_writes, setup
from benchmarks.cluster.api_requests import per_pod, requests
from benchmarks.cluster.milestones import (
    ALLOCATED,
    BOUND,
    CLAIMED,
    CREATED,
    OPEN,
    PREPARED,
    Milestones,
    watched,
)
from benchmarks.processes import Usage, processes_of, usage, used
from benchmarks.report import Row, parser, print_tables, write
from contracts.topics import DECISIONS, SUBMISSIONS, Topic
from runtime.bus.bus import Bus
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.options import Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import CLUSTER

PODS = {"small": 64, "full": 512}
ROUNDS = {"small": 1, "full": 3}
SUBMITTED, DECIDED = "submitted", "decided"
WARM = 8
LIMIT_S = 100.0
BARE, OURS_NAME = "bare loop", "Moorings"
COLUMNS = (
    CREATED, CLAIMED, PREPARED, SUBMITTED, DECIDED, ALLOCATED, OPEN, BOUND,
)  # fmt: skip


class Round(Struct, kw_only=True):
    """What was seen of one gang."""

    way: str
    began_s: float
    decided_s: float
    seen: Milestones
    used: Row
    requests: Counter[str]

    @property
    def rate(self) -> float:
        """Gates opened a second, once it was decided."""
        return self.seen.count(OPEN) / (self.seen.last(OPEN) - self.decided_s)


class Measurement:
    """One gang after the other on one control plane."""

    def __init__(self, plane: ControlPlane, kube: Kube, pods: int) -> None:
        self._plane = plane
        self._kube = kube
        self._pods = pods

    async def bare(self) -> Round:
        """Open the gates of a gang by a bare loop."""
        kubeconfig = str(self._plane.kubeconfig())
        async with self._gang() as (namespace, milestones):
            pids = processes_of(self._plane)
            before, counted = usage(pids), await requests(self._kube)
            began_s = await self._create(namespace)
            await milestones.until(CLAIMED, self._pods, LIMIT_S)
            await bare_writes.prepare(self._kube, namespace, kubeconfig)
            await milestones.until(PREPARED, self._pods, LIMIT_S)
            sent_s = await bare_writes.open_gates(self._kube, namespace, kubeconfig)
            return await self._finish(
                BARE, milestones, (began_s, sent_s), before, counted
            )

    async def ours(self) -> Round:
        """Let Moorings do it."""
        async with (
            setup.moorings(self._plane, self._kube) as (stack, bus),
            self._gang() as (namespace, milestones),
            _bus_watched(bus, namespace, milestones),
        ):
            pids = processes_of(self._plane, stack)
            before, counted = usage(pids), await requests(self._kube)
            began_s = await self._create(namespace)
            await milestones.until(OPEN, self._pods, LIMIT_S)
            times = (began_s, milestones.last(DECIDED))
            return await self._finish(OURS_NAME, milestones, times, before, counted)

    @asynccontextmanager
    async def _gang(self) -> AsyncIterator[tuple[str, Milestones]]:
        async with (
            setup.namespace(self._kube) as namespace,
            watched(self._kube, namespace) as milestones,
        ):
            yield namespace, milestones

    async def _create(self, namespace: str) -> float:
        began_s = time.time()
        made = setup.pods(namespace, [self._pods], gated=True)
        await setup.create(self._kube, made)
        return began_s

    async def _finish(
        self,
        way: str,
        milestones: Milestones,
        times: tuple[float, float],
        before: Usage,
        counted: Counter[str],
    ) -> Round:
        """Wait for kube-scheduler; processors are counted until the gates opened."""
        await milestones.until(OPEN, self._pods, LIMIT_S)
        seconds = used(before, usage(before.pids))
        await milestones.until(BOUND, self._pods, LIMIT_S)
        began_s, decided_s = times
        return Round(
            way=way,
            began_s=began_s,
            decided_s=decided_s,
            seen=milestones,
            used=seconds,
            requests=await requests(self._kube) - counted,
        )


@asynccontextmanager
async def _bus_watched(
    bus: Bus, namespace: str, milestones: Milestones
) -> AsyncIterator[None]:
    """Note when gangs of the namespace were submitted and decided."""
    stop = asyncio.Event()

    async def follow(topic: Topic[Any], milestone: str) -> None:
        below = topic.subjects_below(CLUSTER, namespace)
        async for page in bus.follow(topic.stream, [below], stop):
            for received in page.messages:
                milestones.note(milestone, received.subject, received.time_s)

    tasks = [
        asyncio.create_task(follow(SUBMISSIONS, SUBMITTED)),
        asyncio.create_task(follow(DECISIONS, DECIDED)),
    ]
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait(tasks)


async def measure(plane: ControlPlane, pods: int, rounds: int) -> list[Round]:
    """Measure both ways in every round, so that a busy moment hits both."""
    done: list[Round] = []
    async with plane.client() as kube:
        await setup.create_fleet(kube, -(-pods // setup.DEVICES_EACH) + 2)
        await Measurement(plane, kube, WARM).bare()  # nobody is measured cold
        measurement = Measurement(plane, kube, pods)
        for _ in range(rounds):
            done += [await measurement.bare(), await measurement.ours()]
    return done


def times_of(measured: Round, bare: Round) -> Row:
    """Give the row of a round; `bare` is the loop of the same one."""
    pods = measured.seen.count(OPEN)
    row: dict[str, str | float | int] = {"way": measured.way, "pods": pods}
    for name in COLUMNS:
        if name in measured.seen.times:
            row[f"{name} s"] = measured.seen.last(name) - measured.began_s
    if SUBMITTED in measured.seen.times:
        row["deciding s"] = measured.seen.last(DECIDED) - measured.seen.last(SUBMITTED)
        row["by claims %"] = (
            100
            * (measured.seen.last(CLAIMED) - measured.began_s)
            / (measured.seen.last(OPEN) - measured.began_s)
        )
    row["gates/s"] = measured.rate
    row["share %"] = 100 * measured.rate / bare.rate
    return row


def main() -> None:
    """Print the tables."""
    arguments = parser(__doc__ or "")
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("--pods", type=int)
    options = arguments.parse_args()
    pods = options.pods or PODS[options.size]
    with setup.control_plane(Options()) as plane:
        rounds = asyncio.run(measure(plane, pods, ROUNDS[options.size]))
    pairs = list(zip(rounds[::2], rounds[1::2], strict=True))
    tables: dict[str, list[Row]] = {
        "seconds": [times_of(one, pair[0]) for pair in pairs for one in pair],
        "processor seconds": [{"way": one.way, **one.used} for one in rounds],
        "writes a pod": [
            {"way": one.way, **per_pod(one.requests, one.seen.count(OPEN))}
            for one in rounds
        ],
    }
    rows = print_tables(tables)
    share = 100 * statistics.median(ours.rate / bare.rate for bare, ours in pairs)
    print(f"\ngates opened a second, of the bare loop's: {share:.0f} %")
    write("gang_gates", options, rows)


if __name__ == "__main__":
    main()
