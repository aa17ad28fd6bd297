"""Times as objects hold them."""

from __future__ import annotations

from publisher.times import seconds_between


def test_a_time_that_cannot_be_read_was_long_ago() -> None:
    now = "2026-11-20T12:00:00Z"
    assert seconds_between("2026-11-20T11:59:00Z", now) == 60
    assert seconds_between("soon", now) == float("inf")
    assert seconds_between("2026-11-20T12:00:00", now) == float("inf")
