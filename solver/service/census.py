"""The cluster as gauges, brought up to date now and then by whoever leads.

So that asking for /metrics costs the writing of numbers and nothing else, whatever the
size of the cluster. Between the pages of a count everything else gets its turn.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from time import monotonic, time

from contracts.device import Device
from contracts.streams import STREAMS
from runtime.bus.bus import Bus
from runtime.errors import BusError
from runtime.log import get_logger
from runtime.waits import first_of
from solver.cache import Cache
from solver.cel.evaluator import SelectorEvaluator
from solver.cel.wire import Allowance
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import Projection, project
from solver.service import metrics
from solver.service.device_counts import (
    FREE_STEPS,
    STATES,
    Classes,
    DeviceCounts,
    count_page,
    list_classes,
)
from solver.service.latencies import Latencies
from solver.snapshot.snapshot import Snapshot

_LOOK_S = 1.0
_SELECTOR = Allowance(base_s=0.1, look_s=0.0005)
_SELECTORS_S = 0.5
"""CPU time of all selectors of classes in one count."""
_MOST_VERDICTS = 65_536
_MOST_SHAPES = 32
"""Shapes of lacking nodes that have a series: whoever asks for a pod chooses some."""
_OTHER_SHAPES = "other"

log = get_logger(__name__)


class Census:
    """Counts what the service knows."""

    def __init__(
        self,
        bus: Bus,
        evaluator: SelectorEvaluator,
        latencies: Latencies,
        *,
        leads: Callable[[], bool],
        every_s: float,
    ) -> None:
        self._bus = bus
        self._evaluator = evaluator
        self._latencies = latencies
        self._leads = leads
        self._every_s = every_s
        self._clock_s = 0.0
        """How far the bus's clock is ahead of ours."""
        self._classes: Classes = ()
        self._verdicts: Cache[tuple[str, str, Projection], bool] = Cache(_MOST_VERDICTS)
        self._missing: dict[tuple[str, str, Projection], Device] = {}

    async def run(self, stop: asyncio.Event, snapshot: Callable[[], Snapshot]) -> None:
        """Count again and again while we lead; who does not has nothing to say."""
        counted_s = float("-inf")
        while not stop.is_set():
            if not self._leads():
                self._fall_silent()
                counted_s = float("-inf")
            elif monotonic() - counted_s >= self._every_s:
                counted_s = monotonic()
                await self._measure_bus()
                await self.count(snapshot())
            await first_of(stop, within_s=_LOOK_S)

    def _fall_silent(self) -> None:
        for gauge in (
            metrics.GANGS,
            metrics.WAITING,
            metrics.NODES_LACKING,
            metrics.NODES,
            metrics.CLASS_DEVICES,
            metrics.CLASS_NODES,
            metrics.STREAM_BYTES,
            metrics.STREAM_LIMIT,
        ):
            gauge.clear()
        metrics.OLDEST.set(0.0)

    async def _measure_bus(self) -> None:
        try:
            for stream in STREAMS:
                usage = await self._bus.usage(stream.name)
                metrics.STREAM_BYTES.labels(stream.name).set(usage.bytes)
                metrics.STREAM_LIMIT.labels(stream.name).set(usage.limit_bytes)
                self._clock_s = usage.time_s - time()
        except BusError as error:
            log.warning("census.delayed", reason=str(error))

    async def count(self, snapshot: Snapshot) -> None:
        """Count gangs, nodes and devices."""
        self._count_gangs(snapshot)
        counts = await self._count_devices(snapshot)
        if self._missing:
            await self._judge_missing()
            counts = await self._count_devices(snapshot)
        names = [device_class.name for device_class in self._classes]
        devices = {
            (name, state): counts.devices[name, state]
            for name in names
            for state in STATES
        }
        nodes = {
            (name, str(free)): counts.nodes[name, free]
            for name in names
            for free in FREE_STEPS
        }
        metrics.set_gauge(metrics.CLASS_DEVICES, devices)
        metrics.set_gauge(metrics.CLASS_NODES, nodes)

    def _count_gangs(self, snapshot: Snapshot) -> None:
        phases = Counter(record.phase.value for record in snapshot.gangs.values())
        reasons = Counter(
            record.reasons[0].rule.value if record.reasons else "none"
            for record in snapshot.waiting.values()
        )
        nodes = Counter(
            "away" if node.away else "present"
            for node in snapshot.inventory.nodes.values()
        )
        for gauge, numbers in (
            (metrics.GANGS, phases),
            (metrics.WAITING, reasons),
            (metrics.NODES_LACKING, _count_lacking(snapshot)),
            (metrics.NODES, nodes),
        ):
            metrics.set_gauge(
                gauge, {(label,): number for label, number in numbers.items()}
            )
        oldest_s = self._latencies.oldest_s(snapshot.waiting)
        now_s = time() + self._clock_s
        metrics.OLDEST.set(0.0 if oldest_s is None else max(0.0, now_s - oldest_s))

    async def _count_devices(self, snapshot: Snapshot) -> DeviceCounts:
        pages = snapshot.inventory.pages
        classes = list_classes(pages.of(""))
        if classes != self._classes:
            self._classes = classes
        counts = DeviceCounts.of_none()
        for page in pages:
            counts.add(count_page(page, self._classes, self._judge))
            await asyncio.sleep(0)
        return counts

    def _judge(self, expression: str, driver: str, device: Device) -> bool | None:
        projection = project(footprint_of(expression), driver, device)
        key = (expression, driver, projection)
        verdict = self._verdicts.get(key)
        if verdict is None:
            self._missing.setdefault(key, device)
        return verdict

    async def _judge_missing(self) -> None:
        """Evaluate what is not known; what takes too long is asked next time."""
        missing, self._missing = self._missing, {}
        rows = [(expr, driver, device) for (expr, driver, _), device in missing.items()]
        verdicts, _ = await asyncio.to_thread(
            self._evaluator.evaluate_within, rows, _SELECTOR, _SELECTORS_S
        )
        for key, verdict in zip(missing, verdicts, strict=True):
            if verdict is not None:
                self._verdicts.keep(key, verdict.value is True)


def _count_lacking(snapshot: Snapshot) -> Counter[str]:
    """Count the nodes that gangs lack by shape; beyond the most, together."""
    counts = Counter[str]()
    for record in snapshot.waiting.values():
        for each in record.lacks:
            counts[each.shape or each.like] += each.count
    told = Counter(dict(counts.most_common(_MOST_SHAPES)))
    others = counts.total() - told.total()
    return told + Counter({_OTHER_SHAPES: others})
