"""Simulations for tests: traces that were made up, and a cluster of equal nodes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from contracts.device import Device
from moorings.simulate.cluster import SimulatedCluster
from moorings.simulate.job import Job
from solver.selectors.table import Verdict
from tests.builders.devices import devices, pool
from tests.builders.problems import evaluate, snapshot_of
from tests.builders.values import DEVICE_CLASS

TRACES = Path(__file__).parent.parent / "data" / "traces"


def make_cluster(nodes: int, gpus: int = 8) -> SimulatedCluster:
    """Make an empty cluster of equal nodes."""
    names = (f"n-{number}" for number in range(nodes))
    pools = {name: [pool(*devices(gpus), name=name)] for name in names}
    return SimulatedCluster(
        snapshot=snapshot_of(pools),
        device_class=DEVICE_CLASS,
        nodes=nodes,
        devices=nodes * gpus,
        node_devices=gpus,
    )


def make_job(
    name: str, devices: int, at_s: int = 0, runs_s: int = 60, limit_s: int | None = 60
) -> Job:
    """Make a job of the one queue."""
    return Job(
        name=name,
        queue="team",
        at_s=at_s,
        runs_s=runs_s,
        limit_s=limit_s,
        devices=devices,
    )


def draw_jobs(seed: int, count: int, most: int) -> list[Job]:
    """Draw jobs that end before they must, in two queues."""
    draw, at_s, jobs = random.Random(seed), 0, list[Job]()
    for number in range(count):
        at_s += draw.randrange(40)
        runs_s = draw.randrange(1, 200)
        job = Job(
            name=f"job-{number}",
            queue=draw.choice(("team-a", "team-b")),
            at_s=at_s,
            runs_s=runs_s,
            limit_s=None if draw.random() < 0.1 else runs_s * draw.randrange(1, 4),
            devices=min(draw.choice((1, 1, 1, 2, 3, 4, 8, 12)), most),
        )
        jobs.append(job)
    return jobs


def evaluate_rows(rows: Sequence[tuple[str, str, Device]]) -> list[Verdict]:
    """Judge selectors without a sandbox."""
    return [evaluate(*row) for row in rows]
