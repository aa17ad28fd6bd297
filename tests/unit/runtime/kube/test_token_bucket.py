"""Requests go as client-go lets them go: a burst, then so many a second."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.kube.token_bucket import TokenBucket

START_S = 1000.0


def test_without_a_limit_nobody_waits() -> None:
    bucket = TokenBucket()
    assert [bucket.take(START_S) for _ in range(1000)] == [0.0] * 1000


def test_a_burst_goes_at_once_and_the_rest_one_after_the_other() -> None:
    bucket = TokenBucket(qps=10, burst=3)
    waits = [bucket.take(START_S) for _ in range(6)]
    assert waits == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_tokens_come_back_but_no_more_than_the_burst() -> None:
    bucket = TokenBucket(qps=10, burst=2)
    assert [bucket.take(START_S) for _ in range(3)] == pytest.approx([0, 0, 0.1])
    # The one that is owed, then half of another.
    assert bucket.take(START_S + 0.15) == pytest.approx(0.05)
    later = [bucket.take(START_S + 100) for _ in range(3)]
    assert later == pytest.approx([0, 0, 0.1])


@given(
    qps=st.floats(0.5, 500),
    burst=st.integers(1, 50),
    pauses=st.lists(st.floats(0, 2), min_size=1, max_size=60),
)
def test_no_interval_sees_more_than_burst_and_rate(
    qps: float, burst: int, pauses: list[float]
) -> None:
    """And nobody overtakes."""
    bucket, now_s, sent = TokenBucket(qps, burst), START_S, []
    for pause in pauses:
        now_s += pause
        sent.append(now_s + bucket.take(now_s))
    assert all(after > before - 1e-6 for before, after in pairwise(sent))
    for first, began_s in enumerate(sent):
        for last in range(first, len(sent)):
            most = burst + (sent[last] - began_s) * qps
            assert last - first + 1 <= most + 1e-6
