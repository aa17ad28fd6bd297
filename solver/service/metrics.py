"""What the solver's service counts; what is counted was decided elsewhere.

The core returns values, and this module looks at them. Whatever depends on the whole
cluster is made by the census (census.py), not when somebody asks for /metrics.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from time import perf_counter
from typing import TypeVar

from prometheus_client import Counter, Gauge, Histogram

from contracts.messages import AllocationLost, AllocationRefused
from runtime.metrics import LONGER_SECONDS, SECONDS
from solver.decision import Decision, TierValue

BATCH_GANGS = Histogram(
    "moorings_batch_gangs",
    "Gangs that were decided together.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
)
STAGE_SECONDS = Histogram(
    "moorings_solve_stage_duration_seconds",
    "Seconds of a batch by stage.",
    ("stage",),
    buckets=(*SECONDS, *LONGER_SECONDS),
)
SOLVES = Counter(
    "moorings_solves_total",
    "Batches that were decided, by engine (none: counting was enough) and status.",
    ("engine", "status"),
)
VERDICTS = Counter(
    "moorings_decisions_total", "Gangs that were decided, by verdict.", ("verdict",)
)
GAP = Histogram(
    "moorings_solve_gap_ratio",
    "How far a tier of the objective is from what no answer exceeds, as a share of"
    " that bound; 0: proven best.",
    ("tier",),
    buckets=(0.0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0),
)
UNPROVEN = Counter(
    "moorings_solve_unbounded_total",
    "Tiers of the objective that were decided without any bound.",
    ("tier",),
)
WORK = Histogram(
    "moorings_solve_work",
    "Deterministic time of a batch, by engine.",
    ("engine",),
    buckets=(0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
)
FAILED = Counter(
    "moorings_batches_failed_total", "Batches of any size that were not decided."
)
WORKER_RESTARTS = Counter(
    "moorings_worker_restarts_total",
    "Times that the worker process was started again.",
)
SANDBOX_KILLS = Counter(
    "moorings_sandbox_kills_total",
    "Sandbox processes that an expression ended, or that were ended for one.",
)
PASSED_OVER = Counter(
    "moorings_messages_passed_over_total",
    "Messages of node agents that said something new too often, by what they are"
    " about: only the last of them is read.",
    ("entity",),
)
VOIDED = Counter(
    "moorings_placements_voided_total",
    "Decisions that did not come about: refused before, lost after they were written.",
    ("kind",),
)
# A rate of what never happened is 0, and not unknown.
VOIDED.labels(AllocationRefused.__name__)
VOIDED.labels(AllocationLost.__name__)
PREEMPTED = Counter("moorings_gangs_preempted_total", "Gangs that ended for others.")
PREEMPTED_DEVICE_SECONDS = Counter(
    "moorings_preempted_device_seconds_total",
    "Device-seconds of work that gangs lost which ended for others.",
)
MOVED_LATER = Counter(
    "moorings_promises_moved_later",
    "Expected starts that were moved later than promised.",
)
GANGS = Gauge("moorings_gangs", "Gangs that are known, by phase.", ("phase",))
WAITING = Gauge(
    "moorings_gangs_waiting",
    "Gangs that wait for a decision, by the first reason; none was said yet: none.",
    ("reason",),
)
NODES_LACKING = Gauge(
    "moorings_nodes_lacking",
    "Nodes that gangs lack which wait, by shape: what such a node has, or what pods"
    " ask for that no node could hold.",
    ("shape",),
)
OLDEST = Gauge(
    "moorings_oldest_waiting_seconds",
    "Seconds since the gang was submitted that waits longest.",
)
CLASS_DEVICES = Gauge(
    "moorings_class_devices",
    "Devices of a DeviceClass: free, held, unhealthy, or unavailable with their node.",
    ("device_class", "state"),
)
CLASS_NODES = Gauge(
    "moorings_class_nodes",
    "Nodes that have so many free devices of a DeviceClass, or more.",
    ("device_class", "free"),
)
NODES = Gauge("moorings_nodes", "Nodes that are known, by state.", ("state",))
STREAM_BYTES = Gauge(
    "moorings_stream_bytes", "Bytes that a stream of the bus takes.", ("stream",)
)
STREAM_LIMIT = Gauge(
    "moorings_stream_limit_bytes", "Bytes that a stream may take.", ("stream",)
)


L = TypeVar("L", bound=tuple[str, ...])


class StageClock:
    """Times stages, each without those that lie in it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._running: list[str] = []
        self._since_s = 0.0

    def begin(self, name: str) -> None:
        """Begin a stage, inside of the one that runs."""
        self._lap()
        self._running.append(name)

    def end(self) -> None:
        """End the stage that began last."""
        self._lap()
        self._running.pop()

    def _lap(self) -> None:
        now_s = perf_counter()
        if self._running:
            name = self._running[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + now_s - self._since_s
        self._since_s = now_s


def observe_stages(seconds: Mapping[str, float]) -> None:
    """Count what the stages of one batch took."""
    for stage, took_s in seconds.items():
        STAGE_SECONDS.labels(stage).observe(took_s)


def observe_decision(decision: Decision) -> None:
    """Count a batch that was decided and published."""
    statistics = decision.statistics
    engine = statistics.engine or "none"
    SOLVES.labels(engine, decision.status.value).inc()
    WORK.labels(engine).observe(statistics.work)
    BATCH_GANGS.observe(len(decision.gangs))
    verdicts = Tally(gang.verdict for gang in decision.gangs)
    for verdict, gangs in verdicts.items():
        VERDICTS.labels(verdict).inc(gangs)
    for tier in decision.objective:
        _observe_gap(tier)


def _observe_gap(tier: TierValue) -> None:
    if tier.bound is None:
        UNPROVEN.labels(str(tier.tier)).inc()
        return
    gap = (tier.bound - tier.value) / max(1, abs(tier.bound))
    GAP.labels(str(tier.tier)).observe(max(0.0, gap))


def set_gauge(gauge: Gauge, values: Mapping[L, float]) -> None:
    """Let a gauge have just these series."""
    gauge.clear()
    for labels, value in values.items():
        gauge.labels(*labels).set(value)
