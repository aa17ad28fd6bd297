"""Histograms are read, and their quantiles are Prometheus' own."""

from __future__ import annotations

import pytest

from benchmarks.cluster.guide_queries import Buckets, buckets, quantile

METRICS = """\
# TYPE work_seconds histogram
work_seconds_bucket{name="resource_claim",le="0.1"} 3
work_seconds_bucket{name="resource_claim",le="1"} 4
work_seconds_bucket{name="resource_claim",le="+Inf"} 5
work_seconds_count{name="resource_claim"} 5
work_seconds_bucket{name="job",le="0.1"} 1
work_seconds_bucket{name="job",le="1"} 2
work_seconds_bucket{name="job",le="+Inf"} 2
"""
INF = float("inf")


def test_buckets_of_a_label_or_of_all_are_added_up() -> None:
    only = buckets(METRICS, "work_seconds", 'name="resource_claim"')
    assert only == {0.1: 3, 1: 4, INF: 5}
    assert buckets(METRICS, "work_seconds", "") == {0.1: 4, 1: 6, INF: 7}
    assert buckets(METRICS, "others", "") == {}


@pytest.mark.parametrize(
    ("share", "counts", "seconds"),
    [
        (0.5, {0.1: 5.0, 1.0: 10.0, INF: 10.0}, 0.1),
        (0.75, {0.1: 5.0, 1.0: 10.0, INF: 10.0}, 0.55),
        (0.25, {0.1: 5.0, INF: 5.0}, 0.025),
        (0.99, {0.1: 5.0, INF: 10.0}, 0.1),
        (0.99, {}, 0.0),
        (0.99, {0.1: 0.0, INF: 0.0}, 0.0),
    ],
)
def test_a_quantile_is_interpolated_in_its_bucket(
    share: float, counts: Buckets, seconds: float
) -> None:
    """Above the last bound it is that bound; of nothing it is 0."""
    assert quantile(share, counts) == pytest.approx(seconds)
