"""Durations as people write them."""

from __future__ import annotations

import pytest

from contracts.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("2h30m", 9000), ("1.5h", 5400), ("0.2s", 1), ("1m1s", 61)],
)
def test_durations_are_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "90",
        "-1h",
        "0s",
        "1d",
        "h",
        "1h ",
        "1 h",
        "99999999h",
        "1e3s",
        "٣s",
        "1m" * 21,
    ],
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration such as"):
        parse_duration(text)
