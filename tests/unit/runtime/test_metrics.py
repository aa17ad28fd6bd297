"""What every service counts, and what of others' words may be a label."""

from __future__ import annotations

from prometheus_client import REGISTRY

from runtime.metrics import OTHER, BoundedLabels, QueueMetrics, observe_gang


def value(series: str, /, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(series, labels)


def test_no_author_decides_how_many_series_there_are() -> None:
    labels = BoundedLabels(2)
    asked = [("a", "0"), ("b", "0"), ("c", "0"), ("a", "0")]
    assert [labels.of(*pair) for pair in asked] == [
        ("a", "0"),
        ("b", "0"),
        (OTHER, OTHER),
        ("a", "0"),
    ]


def test_the_queues_of_gangs_are_bounded() -> None:
    """A namespace for each gang costs no series for each gang."""
    for number in range(500):
        observe_gang("tested", f"queue-{number}", 0, 1.0)
    queues = {
        sample.labels["queue"]
        for family in REGISTRY.collect()
        if family.name == "moorings_gang_stage_duration_seconds"
        for sample in family.samples
    }
    assert OTHER in queues
    assert len(queues) <= 34


def test_a_queue_counts_what_workqueues_count() -> None:
    """An item that is put again while it waits is one; depth is what waits."""
    queue: QueueMetrics[str] = QueueMetrics("tested-queue")
    for item in ("a", "b", "a"):
        queue.added(item)
    assert value("workqueue_adds_total", name="tested-queue") == 2
    assert value("workqueue_depth", name="tested-queue") == 2

    queue.taken("a")
    queue.dropped("b")
    assert value("workqueue_depth", name="tested-queue") == 0
    running = value("workqueue_unfinished_work_seconds", name="tested-queue")
    assert running is not None
    assert running > 0
    longest = "workqueue_longest_running_processor_seconds"
    assert (value(longest, name="tested-queue") or 0.0) >= running

    queue.done("a")
    queue.retried()
    counted = {
        name: value(f"workqueue_{name}", name="tested-queue")
        for name in (
            "unfinished_work_seconds",
            "queue_duration_seconds_count",
            "work_duration_seconds_count",
            "retries_total",
        )
    }
    assert counted == {
        "unfinished_work_seconds": 0,
        "queue_duration_seconds_count": 1,
        "work_duration_seconds_count": 1,
        "retries_total": 1,
    }


def test_the_depth_may_be_counted_elsewhere() -> None:
    queue: QueueMetrics[str] = QueueMetrics("tested-elsewhere")
    queue.depth_by(lambda: 7)
    queue.added("a")
    assert value("workqueue_depth", name="tested-elsewhere") == 7
