"""Times of RFC 3339, there and back."""

from __future__ import annotations

import pytest

from contracts.times import read_time, write_time


@pytest.mark.parametrize(
    ("text", "time_s"),
    [
        ("1970-01-01T00:10:00Z", 600.0),
        ("1970-01-01T01:10:00.5+01:00", 600.5),
        ("soon", 0.0),
        ("", 0.0),
    ],
)
def test_what_is_no_time_is_the_epoch(text: str, time_s: float) -> None:
    assert read_time(text) == time_s


def test_a_second_is_written_in_utc() -> None:
    assert write_time(600) == "1970-01-01T00:10:00Z"
