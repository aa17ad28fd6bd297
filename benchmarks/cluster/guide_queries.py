"""The queries of Kubernetes' guide for administrators of devices, over a time.

Five of the nine, on kube-controller-manager and kube-scheduler; kubelets are played
here. `depth` is the most that was seen once a second, `p99` is what Prometheus'
histogram_quantile would say; buckets of `work` are powers of ten. `limiter` is no query
of the guide's: how long requests of the controller manager wait for its client limit.
The board of `k8s/components/monitoring` has all nine.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise

from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.options import CONTROLLER_MANAGER, SCHEDULER
from tests.lab.controlplane.server import ControlPlane

_LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_BOUND = re.compile(r'\ble="([^"]*)"')
_CLAIMS = 'name="resource_claim"'
_ADDED, _DEPTH = "workqueue_adds_total", "workqueue_depth"
_HISTOGRAMS = {
    "work": (CONTROLLER_MANAGER, "workqueue_work_duration_seconds", _CLAIMS),
    "limiter": (CONTROLLER_MANAGER, "rest_client_rate_limiter_duration_seconds", ""),
    "scheduling": (SCHEDULER, "scheduler_pod_scheduling_sli_duration_seconds", ""),
    "algorithm": (SCHEDULER, "scheduler_scheduling_algorithm_duration_seconds", ""),
}

Buckets = dict[float, float]
"""How many took so many seconds at most, by the bound."""


@asynccontextmanager
async def queried(plane: ControlPlane) -> AsyncIterator[dict[str, float]]:
    """Yield a row that is filled when the block ends."""
    row: dict[str, float] = {}
    async with (
        plane.component(CONTROLLER_MANAGER) as manager,
        plane.component(SCHEDULER) as scheduler,
    ):
        of = {CONTROLLER_MANAGER: manager, SCHEDULER: scheduler}
        before, began_s = await _read(of), time.monotonic()
        depths: list[float] = []
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(_follow_depth(manager, depths))
            yield row
            watch.cancel()
        after, seconds = await _read(of), time.monotonic() - began_s
    added = _sum(after[CONTROLLER_MANAGER], _ADDED) - _sum(
        before[CONTROLLER_MANAGER], _ADDED
    )
    row |= {"added/s": added / seconds, "depth max": max(depths, default=0.0)}
    for name, (component, series, label) in _HISTOGRAMS.items():
        earlier = buckets(before[component], series, label)
        grown = {
            bound: count - earlier.get(bound, 0.0)
            for bound, count in buckets(after[component], series, label).items()
        }
        row[f"{name} p99 s"] = quantile(0.99, grown)


async def _read(components: Mapping[str, Kube]) -> dict[str, str]:
    return {name: await kube.text("/metrics") for name, kube in components.items()}


async def _follow_depth(manager: Kube, depths: list[float]) -> None:
    while True:
        depths.append(_sum(await manager.text("/metrics"), _DEPTH))
        await asyncio.sleep(1)


def _sum(text: str, series: str) -> float:
    """Add up a series of the controller of claims."""
    return sum(
        float(value)
        for name, labels, value in _LINE.findall(text)
        if name == series and _CLAIMS in labels
    )


def buckets(text: str, series: str, label: str) -> Buckets:
    """Read a histogram, the sum of all whose labels have `label`."""
    found: Buckets = {}
    for name, labels, value in _LINE.findall(text):
        if name == f"{series}_bucket" and label in labels:
            bound = float(_BOUND.findall(labels)[0])
            found[bound] = found.get(bound, 0.0) + float(value)
    return found


def quantile(share: float, counts: Buckets) -> float:
    """Return the seconds that this share took at most, as histogram_quantile does.

    In its bucket they are taken to be spread evenly; above the last bound it is that
    bound. 0 if there is nothing.
    """
    ordered = sorted(counts.items())
    wanted = share * ordered[-1][1] if ordered else 0.0
    for (low_s, below), (high_s, count) in pairwise([(0.0, 0.0), *ordered]):
        if count >= wanted > below:
            if high_s == float("inf"):
                return low_s
            return low_s + (high_s - low_s) * (wanted - below) / (count - below)
    return 0.0
