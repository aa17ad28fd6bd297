"""Metrics that all services share, under the names that dashboards use.

`leader_election_*`, `rest_client_*` and `workqueue_*` are called and mean what they do
in Kubernetes' own components (k8s.io/component-base/metrics). Each service has one
module of its own metrics beside this one; docs/metrics.md lists all of them. Nothing
that others write is a label unless `BoundedLabels` bounds it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from time import monotonic
from typing import Generic, TypeVar

from prometheus_client import (
    REGISTRY,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

K = TypeVar("K", bound=Hashable)

# When each series began doubles the size of a scrape, and nobody asks for it.
disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no types

OTHER = "other"
"""Stands for every value of a label that there was no room for."""
MOST_ENTITIES = 64
MOST_QUEUES = 32
"""Pairs of a namespace and a priority that have series of their own."""

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5)
LONGER_SECONDS = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Bounds of buckets: of one step, and what a slow one may take."""

BUS_CONNECTED = Gauge("moorings_bus_connected", "1 while connected to NATS, else 0.")
BUS_CONNECTIONS = Counter("moorings_bus_connections_total", "Connections made to NATS.")
BUS_PUBLISH_REFUSED = Counter(
    "moorings_bus_publish_refused_total",
    "Messages that NATS did not store, by reason.",
    ("kind",),
)
STREAM_LAG = Gauge(
    "moorings_stream_lag_messages",
    "Stored messages of a stream that are not read yet.",
    ("stream",),
)
CONSUMERS_STALLED = Counter(
    "moorings_consumers_stalled_total",
    "Consumers that were made anew because they delivered nothing of what was pending.",
    ("stream",),
)
REFUSED = Counter(
    "moorings_refused_total",
    "Messages and objects that were skipped, by what they are about and by "
    "fault: the author's or ours.",
    ("entity", "fault"),
)
RETRIES = Counter("moorings_retries_total", "Retries.")
LEADER = Gauge(
    "leader_election_master_status",
    "1 while this process leads, else 0.",
    ("name",),
)
API_REQUESTS = Counter(
    "rest_client_requests_total",
    "Requests to the API server, by answer; <error>: no answer.",
    ("code", "method"),
)
API_SECONDS = Histogram(
    "rest_client_request_duration_seconds",
    "Seconds until the API server had answered a request.",
    ("verb",),
    buckets=(*SECONDS[3:], 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
API_THROTTLED = Histogram(
    "rest_client_rate_limiter_duration_seconds",
    "Seconds that requests waited for a client limit of ours; others are not counted.",
    ("verb",),
    buckets=(*SECONDS[3:], 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
GANG_SECONDS = Histogram(
    "moorings_gang_stage_duration_seconds",
    "Seconds of a gang by the bus's clock: submitted to first decision (decision), to"
    " allocated, decision to written, written to gates, gates to bound.",
    ("stage", "queue", "priority"),
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, *LONGER_SECONDS, 600.0, 3600.0),
)
_ADDS = Counter(
    "workqueue_adds_total", "Items that were added to a queue of work.", ("name",)
)
_QUEUED = Histogram(
    "workqueue_queue_duration_seconds",
    "Seconds that an item was in a queue before it was taken.",
    ("name",),
    buckets=(*SECONDS[1:], *LONGER_SECONDS),
)
_WORKED = Histogram(
    "workqueue_work_duration_seconds",
    "Seconds that work on an item of a queue took.",
    ("name",),
    buckets=(*SECONDS[1:], *LONGER_SECONDS),
)
_RETRIED = Counter(
    "workqueue_retries_total",
    "Items that were put back because work on them failed.",
    ("name",),
)


class BoundedLabels:
    """The first values that come are labels, all others are `OTHER`.

    A namespace, a priority or a driver is somebody else's word: without a bound its
    author decides how much memory we and Prometheus take.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[tuple[str, ...]] = set()

    def of(self, *values: str) -> tuple[str, ...]:
        """Return the values together, or as many times `OTHER`."""
        if values not in self._known:
            if len(self._known) >= self._most:
                return (OTHER,) * len(values)
            self._known.add(values)
        return values


_ENTITIES = BoundedLabels(MOST_ENTITIES)
_QUEUES = BoundedLabels(MOST_QUEUES)


def count_refused(entity: str, *, ours: bool) -> None:
    """Count what was refused; `ours`: by a mistake of ours, not of its author."""
    REFUSED.labels(*_ENTITIES.of(entity), "ours" if ours else "author").inc()


_GANG_SERIES: dict[tuple[str, ...], Histogram] = {}
"""Found by their labels, which takes the client longer than to count."""


def observe_gang(stage: str, queue: str, priority: int, seconds: float) -> None:
    """Count what one stage of a gang's life took."""
    labels = (stage, *_QUEUES.of(queue, str(priority)))
    series = _GANG_SERIES.get(labels)
    if series is None:
        series = _GANG_SERIES[labels] = GANG_SECONDS.labels(*labels)
    series.observe(max(0.0, seconds))


class QueueMetrics(Generic[K]):
    """Metrics of a queue, as client-go's workqueues have them.

    Call `added`, `taken` and `done` for each item; `retried` when it is put back.
    """

    def __init__(self, name: str) -> None:
        self._depth: Callable[[], int] | None = None
        self._adds = _ADDS.labels(name)
        self._queued = _QUEUED.labels(name)
        self._worked = _WORKED.labels(name)
        self._retries = _RETRIED.labels(name)
        self._added_s: dict[K, float] = {}
        self._taken_s: dict[K, float] = {}
        WORK_AT_HAND.follow(name, self)

    def depth_by(self, count: Callable[[], int]) -> None:
        """Count the items that wait so, where they do not all pass `added`."""
        self._depth = count

    @property
    def depth(self) -> int:
        """Items that wait."""
        return len(self._added_s) if self._depth is None else self._depth()

    @property
    def unfinished_s(self) -> tuple[float, ...]:
        """How long each item has been worked on that is not done."""
        now_s = monotonic()
        return tuple(now_s - at_s for at_s in self._taken_s.values())

    def added(self, item: K) -> None:
        """Count an item, unless it waits already."""
        if item not in self._added_s:
            self._adds.inc()
            self._added_s[item] = monotonic()

    def dropped(self, item: K) -> None:
        """Forget an item that left the queue without being taken."""
        self._added_s.pop(item, None)

    def taken(self, item: K) -> None:
        """Count that work on an item begins."""
        now_s = monotonic()
        self._queued.observe(now_s - self._added_s.pop(item, now_s))
        self._taken_s[item] = now_s

    def done(self, item: K) -> None:
        """Count that work on an item ended."""
        now_s = monotonic()
        self._worked.observe(now_s - self._taken_s.pop(item, now_s))

    def retried(self, items: int = 1) -> None:
        """Count items that could not be done."""
        self._retries.inc(items)


class _WorkAtHand(Collector):
    """The gauges of all queues, read when metrics are collected."""

    def __init__(self) -> None:
        self._queues: dict[str, QueueMetrics[object]] = {}

    def follow(self, name: str, queue: QueueMetrics[K]) -> None:
        """Tell of a queue from now on, in place of an earlier one of its name."""
        self._queues[name] = queue  # type: ignore[assignment]  # it is only asked

    def collect(self) -> tuple[Metric, ...]:
        """Read each queue."""
        depth = GaugeMetricFamily(
            "workqueue_depth", "Items that wait in a queue of work.", labels=("name",)
        )
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds",
            "Seconds of work so far on all unfinished items.",
            labels=("name",),
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds",
            "Seconds of work so far on the longest running item.",
            labels=("name",),
        )
        for name, queue in self._queues.items():
            ages_s = queue.unfinished_s
            depth.add_metric((name,), queue.depth)
            unfinished.add_metric((name,), sum(ages_s))
            longest.add_metric((name,), max(ages_s, default=0.0))
        return depth, unfinished, longest


WORK_AT_HAND = _WorkAtHand()
REGISTRY.register(WORK_AT_HAND)
