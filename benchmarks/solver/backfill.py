"""What reservations do for large gangs: waits beside none, and beside EASY backfill.

Sizes are those of the openb trace, its pods made gangs with a heavy tail: each has its
GPUs times a factor that is drawn from a bounded Pareto distribution, in pods of at most
8. How long jobs run is log-normal; how long they may run is what people say, a round
time well above. `none` and `reservations` are ours, in virtual time; `easy` is a peer
that shares no code with it.

    python -m benchmarks.solver.backfill [--size full] [--seed N] [--json FILE]
"""

from __future__ import annotations

import random
import sys
import time
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from benchmarks.openb.trace import read_trace
from benchmarks.report import Row, parser, report
from benchmarks.solver.easy import EasyBackfill
from contracts.device import Device, ResourcePool
from contracts.ids import DeviceName, DriverName, NodeName, PoolName
from contracts.messages import DevicesAnnounced
from moorings.deciding import Judged
from moorings.local.fleets import make_class
from moorings.simulate.cluster import SimulatedCluster
from moorings.simulate.course import Course, Policy, Stay
from moorings.simulate.job import CLUSTER, Job
from moorings.simulate.measure import Report, measure
from solver.cel.evaluator import SelectorEvaluator
from solver.snapshot.snapshot import Snapshot, apply, observe
from solver.timeline.patience import NEVER

DRIVER, GPUS = "gpu.example.com", 8
LOAD = 0.9
NODES, ARRIVALS = {"small": 16, "full": 32}, {"small": 200, "full": 10_000}
TAIL, LARGEST = 1.5, 0.5
"""Exponent of the Pareto distribution, and its bound as a share of the fleet."""
MEDIAN_S, SPREAD, LONGEST_S = 1800, 1.2, 86_400
ROUND_S = (300, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400, 172_800)
"""What people say (Tsafrir and others, 2005: most choose among few round times)."""
SEEDS = {"small": (1,), "full": (1, 2, 3)}


def main() -> None:
    """Run it."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--arrivals", type=int, help="how many, if not by size")
    arguments.add_argument("--patience", type=int, default=0, help="seconds")
    arguments.add_argument("--reservations", type=int, default=1, help="at a time")
    arguments.add_argument("--queues", type=int, default=1)
    arguments.add_argument("--seeds", help="numbers with commas, if not by size")
    options = arguments.parse_args()
    rows = list[Row]()
    for row in _run(options):
        print(row, file=sys.stderr, flush=True)
        rows.append(row)
    report("backfill", options, rows)


def draw_jobs(nodes: int, count: int, queues: int, seed: int) -> list[Job]:
    """Draw jobs that ask for `LOAD` of the fleet as they come."""
    draw = random.Random(seed)
    sizes = [pod.gpus for pod in read_trace().pods for _ in range(pod.pods) if pod.gpus]
    drawn = [_draw_job(draw, sizes, int(nodes * GPUS * LARGEST)) for _ in range(count)]
    work = sum(devices * runs_s for devices, runs_s, _ in drawn)
    gap_s = work / count / (nodes * GPUS * LOAD)
    jobs, at_s = list[Job](), 0.0
    for number, (devices, runs_s, limit_s) in enumerate(drawn):
        at_s += draw.expovariate(1 / gap_s)
        job = Job(
            name=f"job-{number:05}",
            queue=f"team-{draw.randrange(queues)}",
            at_s=int(at_s),
            runs_s=runs_s,
            limit_s=limit_s,
            devices=devices,
        )
        jobs.append(job)
    return jobs


def _draw_job(
    draw: random.Random, sizes: Sequence[int], most: int
) -> tuple[int, int, int]:
    factor = draw.paretovariate(TAIL)
    devices = max(1, min(most, int(draw.choice(sizes) * factor)))
    if devices > GPUS:
        devices -= devices % GPUS
    runs_s = int(min(draw.lognormvariate(0, SPREAD) * MEDIAN_S, LONGEST_S)) + 10
    thought_s = runs_s / max(draw.random(), 0.1)
    limit_s = ROUND_S[min(bisect_left(ROUND_S, thought_s), len(ROUND_S) - 1)]
    return devices, runs_s, max(limit_s, runs_s)


def make_cluster(nodes: int) -> SimulatedCluster:
    """Make a cluster of equal nodes."""
    made = make_class(DRIVER)
    snapshot = observe(Snapshot(), made.metadata.name, made)
    for number in range(nodes):
        name = f"node-{number:04}"
        devices = tuple(Device(name=DeviceName(f"gpu-{i}")) for i in range(GPUS))
        pool = ResourcePool(
            driver=DriverName(DRIVER),
            name=PoolName(name),
            generation=1,
            devices=devices,
        )
        announced = DevicesAnnounced(
            cluster=CLUSTER, node=NodeName(name), pools=(pool,)
        )
        snapshot = apply(snapshot, announced)
    return SimulatedCluster(
        snapshot=snapshot,
        device_class=DRIVER,
        nodes=nodes,
        devices=nodes * GPUS,
        node_devices=GPUS,
    )


def _run(options: Namespace) -> Iterator[Row]:
    nodes, arrivals = NODES[options.size], options.arrivals or ARRIVALS[options.size]
    patience_s, of_size = options.patience, SEEDS[options.size]
    policies = (
        Policy(name="none", patience_s=NEVER),
        Policy(
            name="reservations",
            patience_s=patience_s,
            reservations=options.reservations,
        ),
    )
    with SelectorEvaluator() as evaluator:
        for seed in map(int, options.seeds.split(",")) if options.seeds else of_size:
            jobs = draw_jobs(nodes, arrivals, options.queues, seed)
            cluster = make_cluster(nodes)
            judged = Judged(evaluator.evaluate)
            for policy in policies:
                course = Course(cluster, jobs, policy, judged)
                began_s = time.process_time()
                for _ in course.run():
                    pass
                spent_s = time.process_time() - began_s
                stays = list(course.stays.values())
                yield _sum_up(policy.name, seed, stays, nodes, spent_s)
            easy = EasyBackfill([GPUS] * nodes)
            began_s = time.process_time()
            starts = easy.run(
                [(j.at_s, j.runs_s, j.limit_s or j.runs_s, j.devices) for j in jobs]
            )
            spent_s = time.process_time() - began_s
            stays = [
                Stay(job=job, started_s=started_s)
                for job, started_s in zip(jobs, starts, strict=True)
            ]
            yield _sum_up("easy", seed, stays, nodes, spent_s)


def _sum_up(
    policy: str, seed: int, stays: Sequence[Stay], nodes: int, spent_s: float
) -> Row:
    ends = (s.started_s + s.job.runs_s for s in stays if s.started_s is not None)
    made: Report = measure(
        policy, stays, devices=nodes * GPUS, now_s=max(ends, default=0)
    )
    everybody, largest = made.waits[:2]
    return {
        "seed": seed,
        "policy": policy,
        "jobs": made.jobs,
        "started": made.started,
        "mean wait s": everybody.mean_s,
        "p99 s": everybody.p99_s,
        "largest 1 % mean s": largest.mean_s,
        "largest 1 % most s": largest.most_s,
        "utilisation %": round(100 * made.utilisation, 2),
        "promises": made.promises.made,
        "kept": made.promises.kept,
        "moved later": made.promises.moved_later,
        "ms CPU a job": round(1000 * spent_s / made.jobs, 2),
    }


if __name__ == "__main__":
    main()
