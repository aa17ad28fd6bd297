"""The load by which Kubernetes' guide for administrators of devices was measured.

100 nodes of 8 devices. 720 Jobs of one pod that runs on fill 90 % of them, ten Jobs a
second. Then 80 Jobs, ten a second, of 10 pods one after the other, each for 30 s
(`--runs-s`): every free device is wanted, and wanted again as soon as a pod has ended.
Pods have claims from a template; kubelets are played. Source: "Good practices for
dynamic resource allocation as a cluster admin", the DRA test of kubernetes/perf-tests.

A row is a phase: `fill` of the long pods, `churn` of the short ones. Seconds from a
pod's creation until it runs; `claim`, `gate`, `bound` are p99 of the parts: until
Kubernetes' controller manager has made its claim, then until Moorings has opened its
gate, then until kube-scheduler has bound it. `missing` pods never ran, and `phase` is
the time from its first Job, so that pods that were made late show. Each row of `limits`
(requests a second and at once that the controller manager may send; 20/30 is its
default) is a control plane of its own; `kube-scheduler` runs without Moorings, the same
Jobs without gates; it may send 500/1000 either way. Then the guide's queries over the
phase (`guide_queries`), and the processor seconds of each process; `others had` is how
many processors what is not ours had meanwhile.

    python -m benchmarks.cluster.admin_load [--size full] [--limits 20/30 ...]
        [--runs-s 30] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate, pairwise

import msgspec
from msgspec import Struct

from benchmarks.cluster import setup
from benchmarks.cluster.guide_queries import queried
from benchmarks.cluster.milestones import (
    BOUND,
    CREATED,
    ENDED,
    HAS_CLAIM,
    OPEN,
    RUNNING,
    Milestones,
    watched,
)
from benchmarks.processes import processes_of, usage, used
from benchmarks.report import Row, parser, percentile, print_tables, write
from contracts.names import GATE
from tests.lab.cluster import Stack
from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.options import ClientLimits, Options
from tests.lab.controlplane.server import ControlPlane

ALONE, OURS = "kube-scheduler", "Moorings"
LIMITS = {"small": ("500/1000",), "full": ("20/30", "75/150", "500/1000")}
FILL, CHURN = "fill", "churn"
NAMESPACE = "default"
"""Its pods go with the control plane: to delete so many takes minutes."""
STARTED = (CREATED, HAS_CLAIM, OPEN, BOUND, RUNNING)


class Load(Struct, frozen=True, kw_only=True):
    """How large it is."""

    nodes: int = 100
    long_jobs: int = 720
    short_jobs: int = 80
    jobs_a_second: float = 10
    completions: int = 10
    runs_s: float = 30
    fill_limit_s: float = 900
    churn_limit_s: float = 1800


LOADS = {
    "full": Load(),
    "small": Load(
        nodes=10,
        long_jobs=72,
        short_jobs=8,
        jobs_a_second=30,
        completions=2,
        runs_s=1,
        fill_limit_s=60,
        churn_limit_s=60,
    ),
}


Tables = dict[str, list[Row]]
STARTS, QUERIES, PROCESSORS = "pod start", "the guide's queries", "processor seconds"


class Run(Struct, frozen=True, kw_only=True):
    """One control plane that is put under the load."""

    load: Load
    limits: str
    way: str
    plane: ControlPlane
    kube: Kube
    seen: Milestones
    stack: Stack | None

    async def fill(self) -> Tables:
        """Create the long Jobs and wait until all their pods run."""
        load = self.load
        jobs = [self._job(f"long-{i}", 1, 0) for i in range(load.long_jobs)]
        wait = (RUNNING, load.long_jobs, load.fill_limit_s)
        return await self._phase(FILL, jobs, wait)

    async def churn(self) -> Tables:
        """Create the short Jobs and wait until all their pods have ended."""
        load = self.load
        jobs = [
            self._job(f"short-{i}", load.completions, load.runs_s)
            for i in range(load.short_jobs)
        ]
        pods = load.short_jobs * load.completions
        return await self._phase(CHURN, jobs, (ENDED, pods, load.churn_limit_s))

    async def _phase(
        self, phase: str, jobs: Sequence[Json], wait: tuple[str, int, float]
    ) -> Tables:
        began_s = time.time()
        before = usage(processes_of(self.plane, self.stack))
        earlier_pods = set(self.seen.times.get(CREATED, ()))
        milestone, pods, limit_s = wait
        async with queried(self.plane) as queries:
            await self._create(jobs)
            with contextlib.suppress(TimeoutError):  # the row says how many did not
                await self.seen.until(milestone, pods, limit_s)
        seconds = used(before, usage(before.pids))
        row = {"limits": self.limits, "way": self.way, "phase": phase}
        starts = {**self._starts(earlier_pods, pods), "phase s": time.time() - began_s}
        return {
            STARTS: [{**row, **starts}],
            QUERIES: [{**row, **queries}],
            PROCESSORS: [{**row, **seconds}],
        }

    async def _create(self, jobs: Sequence[Json]) -> None:
        began_s = time.time()
        for number, job in enumerate(jobs):
            due_s = began_s + number / self.load.jobs_a_second
            await asyncio.sleep(due_s - time.time())
            await self.kube.create(job)

    def _starts(self, earlier_pods: set[str], pods: int) -> Row:
        """Describe the pods of a phase that run or ran."""
        times = self.seen.times
        started = [name for name in times.get(RUNNING, {}) if name not in earlier_pods]
        made = {name: [times[point][name] for point in STARTED] for name in started}
        seconds = [points[-1] - points[0] for points in made.values()] or [0.0]
        parts = zip(*(_differences(points) for points in made.values()), strict=True)
        names = ("claim", "gate", "bound", "kubelet")
        return {
            "pods": len(started),
            "missing": pods - len(started),
            "p50 s": percentile(seconds, 0.5),
            "p99 s": percentile(seconds, 0.99),
            "max s": max(seconds),
            **{
                f"{name} p99 s": percentile(part, 0.99)
                for name, part in zip(names, parts, strict=False)
            },
        }

    def _job(self, name: str, completions: int, runs_s: float) -> Json:
        pod = objects.pod(
            NAMESPACE,
            name,
            templates={"r": setup.TEMPLATE},
            annotations={kubelet.RUNS_S: str(runs_s)} if runs_s else {},
        )
        if self.way == OURS:
            pod["spec"]["schedulingGates"] = [{"name": GATE}]
        template = {
            "metadata": {"annotations": pod["metadata"]["annotations"]},
            "spec": pod["spec"],
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"namespace": NAMESPACE, "name": name},
            "spec": {
                "completions": completions,
                "parallelism": 1,
                "template": template,
            },
        }


def _differences(points: Sequence[float]) -> list[float]:
    """Give how long each part took; a part that was over before took no time."""
    reached = list(accumulate(points, max))
    return [after - before for before, after in pairwise(reached)]


async def run(load: Load, limits: str, way: str) -> Tables:
    """Put a control plane of its own under the load."""
    qps, burst = map(int, limits.split("/"))
    options = Options(controller_manager_limits=ClientLimits(qps, burst))
    with setup.control_plane(options) as plane:
        async with plane.client() as kube:
            nodes = setup.nodes(load.nodes)
            await setup.create_devices(kube, nodes)
            async with (
                kubelet.running(kube, nodes),
                _stack(plane, kube, way) as stack,
                watched(kube, NAMESPACE) as milestones,
            ):
                spec = objects.requests(setup.DRIVER)
                template = objects.template(NAMESPACE, setup.TEMPLATE, spec)
                await kube.create(template)
                await kube.until(
                    named("v1", "ServiceAccount", "default", NAMESPACE), bool
                )
                under = Run(
                    load=load,
                    limits=limits,
                    way=way,
                    plane=plane,
                    kube=kube,
                    seen=milestones,
                    stack=stack,
                )
                phases = [await under.fill(), await under.churn()]
                return {
                    name: [row for phase in phases for row in phase[name]]
                    for name in phases[0]
                }


@asynccontextmanager
async def _stack(
    plane: ControlPlane, kube: Kube, way: str
) -> AsyncIterator[Stack | None]:
    if way == ALONE:
        yield None
        return
    async with setup.moorings(plane, kube, owned=True) as (stack, _bus):
        yield stack


def main() -> None:
    """Print the table."""
    arguments = parser(__doc__ or "")
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("--limits", nargs="+")
    arguments.add_argument("--runs-s", type=float)
    options = arguments.parse_args()
    load = LOADS[options.size]
    if options.runs_s is not None:
        load = msgspec.structs.replace(load, runs_s=options.runs_s)
    tables: Tables = {STARTS: [], QUERIES: [], PROCESSORS: []}
    for limits in options.limits or LIMITS[options.size]:
        for way in (ALONE, OURS):
            done = asyncio.run(run(load, limits, way))
            print_tables(done)  # a whole run takes most of an hour
            for name, rows in done.items():
                tables[name] += rows
    write("admin_load", options, print_tables(tables))


if __name__ == "__main__":
    main()
