"""What the service shows of itself: latencies of gangs, its queue, the cluster.

The service tells what it takes in; what it has decided is counted where it decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Any

from contracts.ids import GangKey
from contracts.lifecycle import LifecycleMessage
from contracts.messages import AllocationLost, AllocationRefused, SubmitGang
from runtime.bus.bus import Bus
from runtime.metrics import LEADER, QueueMetrics, observe_gang
from runtime.tracing import GangTraces
from runtime.wire import Incoming
from solver.cel.evaluator import SelectorEvaluator
from solver.queueing.gang_queue import GangQueue
from solver.service import metrics
from solver.service.census import Census
from solver.service.latencies import Latencies
from solver.service.lead import Leadership
from solver.snapshot.snapshot import Snapshot


class Telemetry:
    """One service's own."""

    def __init__(
        self,
        bus: Bus,
        evaluator: SelectorEvaluator,
        leadership: Leadership,
        traces: GangTraces,
        *,
        census_s: float,
    ) -> None:
        self._leadership = leadership
        self._traces = traces
        self._latencies = Latencies()
        self._census = Census(
            bus,
            evaluator,
            self._latencies,
            leads=lambda: leadership.leads,
            every_s=census_s,
        )
        self.work: QueueMetrics[GangKey] = QueueMetrics("gangs")
        """The waiting gangs, as a queue of work: taken with their batch."""

    def follow_queue(self, queue: GangQueue) -> None:
        """Show how many gangs are lined up there, where they are decided."""
        leadership = self._leadership
        self.work.depth_by(lambda: queue.lined_up if leadership.leads else 0)

    def note(self, incoming: Incoming[Any], *, is_news: bool) -> None:
        """Take note of what was said; `is_news`: since we know all that was before."""
        message = incoming.message
        if not isinstance(message, LifecycleMessage):
            return
        taken = self._latencies.note(message, incoming.time_s)
        if isinstance(message, SubmitGang):
            self._traces.follow(message.key, incoming.traceparent)
        if not (is_news and self._leadership.leads):
            return
        if isinstance(message, SubmitGang | AllocationLost | AllocationRefused):
            self.work.added(message.key)
        for stage in taken:
            observe_gang(*stage)
        if isinstance(message, AllocationLost | AllocationRefused):
            metrics.VOIDED.labels(type(message).__name__).inc()

    def note_gone(self, gang: GangKey) -> None:
        """Take note that a gang waits no more."""
        self.work.dropped(gang)

    def note_taken_in(self, messages: int, began_s: float) -> None:
        """Count what it took to take messages in, since `perf_counter` was that."""
        if messages:
            metrics.STAGE_SECONDS.labels("snapshot").observe(perf_counter() - began_s)

    async def run(self, stop: asyncio.Event, snapshot: Callable[[], Snapshot]) -> None:
        """Count the cluster until `stop`."""
        LEADER.labels("solver").set_function(lambda: self._leadership.leads)
        await self._census.run(stop, snapshot)
