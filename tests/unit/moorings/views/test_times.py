"""Moments are read as people write them, and shown with their zone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from moorings.views.times import read_span, show_time, to_moment

NOW = datetime(2026, 11, 27, 12, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be nine hours ahead of UTC."""
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "begin", "seconds"),
    [
        ("2026-11-26T14:03", "2026-11-26T05:03:00", 60),
        ("2026-11-26 14:03", "2026-11-26T05:03:00", 60),
        ("2026-11-26T14:03:07", "2026-11-26T05:03:07", 1),
        ("2026-11-26T14:03:07.123Z", "2026-11-26T14:03:07", 1),
        ("2026-11-26 14:03 UTC", "2026-11-26T14:03:00", 60),
        ("2026-11-26 14:03:05 JST", "2026-11-26T05:03:05", 1),
        ("yesterday 14:03 JST", "2026-11-26T05:03:00", 60),
        ("2026-11-26T14:03+02:00", "2026-11-26T12:03:00", 60),
        ("yesterday 14:03", "2026-11-26T05:03:00", 60),
        ("Yesterday", "2026-11-25T15:00:00", 86400),
        ("today 9:05", "2026-11-27T00:05:00", 60),
        ("9:05", "2026-11-27T00:05:00", 60),
        ("2026-11-26", "2026-11-25T15:00:00", 86400),
        ("2h ago", "2026-11-27T10:30:00", 3600),
        ("90m", "2026-11-27T11:00:00", 60),
        ("1 week ago", "2026-11-20T12:30:00", 7 * 86400),
    ],
)
def test_a_moment_is_as_long_as_it_is_written(
    text: str, begin: str, seconds: int
) -> None:
    span = read_span(text, NOW)
    assert span is not None
    assert span.begin.astimezone(UTC).isoformat()[:19] == begin
    assert (span.end - span.begin).total_seconds() == seconds
    assert span.begin in span
    assert span.end not in span


@pytest.mark.parametrize(
    "text",
    [
        "",
        "b3b8184232a5b535",
        "12345678",
        "a.moorings",
        "2026-13-01",
        "25:00",
        "soon",
        "2026-11-26T14:03+99:00",
        "99999999999d ago",
        "2026-11-26T14",
        "yesterday x",
        "14:03 CET",
    ],
)
def test_what_is_no_moment_is_none(text: str) -> None:
    """Ids of solves and names of files are not."""
    assert read_span(text, NOW) is None


def test_a_zone_by_its_name_is_that_of_either_half_of_the_year(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is printed can be typed; the hour that comes twice is told apart."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    for moment in ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"):
        span = read_span(show_time(moment), NOW)
        assert span is not None
        assert span.begin == to_moment(moment)


def test_times_are_shown_where_one_is() -> None:
    assert show_time("2026-11-26T05:03:00Z") == "2026-11-26 14:03:00 JST"
    assert show_time(1_795_669_380.5) == "2026-11-26 14:03:00 JST"
    assert show_time(NOW) == "2026-11-27 21:30:00 JST"
    assert show_time("2026-11-26T05:03:00") == "2026-11-26 14:03:00 JST"
    assert show_time("soon") == "soon"
    assert to_moment("soon") is None
