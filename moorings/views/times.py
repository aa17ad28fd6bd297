"""Moments as people write them and read them: local time, with its zone.

Reads the zone of this machine (TZ), and nothing else.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as clock_time
from math import ceil

from msgspec import Struct

from contracts.times import write_time

MOMENTS = "2026-11-26T14:03, 'yesterday 14:03', 14:03, or '2h ago'"
"""Examples for help and errors."""
_DAYS = {"today": 0, "yesterday": 1}
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ZONE = re.compile(r"\s*(Z|UTC|[+-]\d\d:?\d\d)$")
_LOCAL_NAME = re.compile(r"\s+([^\s:]+)$")
_AGO = re.compile(r"(\d+)\s*([smhdw])[a-z]*(?:\s+ago)?")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Span(Struct, frozen=True):
    """What somebody means by a moment: as long as it was written exactly."""

    begin: datetime
    end: datetime
    """The first moment after it."""

    def __contains__(self, moment: datetime) -> bool:
        return self.begin <= moment < self.end


def show_time(moment: str | float | datetime) -> str:
    """Write a moment as `2026-11-26 14:03:05 CET`; what is no moment stays as it is.

    A text is RFC 3339, a number seconds since the epoch.
    """
    read = to_moment(moment)
    if read is None:
        return str(moment)
    local = read.astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S} {local:%Z}"


def to_moment(moment: str | float | datetime) -> datetime | None:
    """Read what machines write: RFC 3339 or seconds since the epoch; None: neither."""
    try:
        match moment:
            case datetime():
                return moment
            case str():
                read = datetime.fromisoformat(moment)
                return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
            case _:
                return datetime.fromtimestamp(moment, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def to_text(moment_s: float) -> str:
    """Write seconds since the epoch as RFC 3339 in UTC; a begun second counts."""
    return write_time(ceil(moment_s))


def read_span(text: str, now: datetime) -> Span | None:
    """Read what a person writes, in local time unless it names a zone; None: no time.

    Such as `MOMENTS`. A day means all of it, a minute all of its seconds.
    """
    text = text.strip()
    try:
        if ago := _AGO.fullmatch(text):
            length = timedelta(**{_UNITS[ago[2]]: 1})
            return Span(now - int(ago[1]) * length, now - (int(ago[1]) - 1) * length)
        return _read_date(text, now)
    except (ValueError, OverflowError):
        return None


def _read_date(text: str, now: datetime) -> Span | None:
    """Read a day, a time of today, or both; None: it is neither.

    Raises:
        ValueError: there is no such day, hour or zone.
    """
    zone: tzinfo | None = None
    local_name = ""
    if ":" in text and (found := _ZONE.search(text)):
        offset = "+00:00" if found[1] in ("Z", "UTC") else found[1]
        zone = datetime.fromisoformat(f"2000-01-01T00:00{offset}").tzinfo
        text = text[: found.start()]
    elif ":" in text and (found := _LOCAL_NAME.search(text)):
        local_name, text = found[1], text[: found.start()]
    day, _, clock = text.replace("T", " ", 1).partition(" ")
    if not clock and ":" in day:
        day, clock = "today", day
    if day.lower() in _DAYS:
        on = now.astimezone(zone).date() - timedelta(days=_DAYS[day.lower()])
    elif _DATE.fullmatch(day):
        on = date.fromisoformat(day)
    else:
        return None
    if not clock:
        return _make_span(datetime.combine(on, clock_time()), timedelta(days=1), zone)
    if (found := _CLOCK.fullmatch(clock.strip())) is None:
        return None
    hour, minute, second = found.groups()
    at = clock_time(int(hour), int(minute), int(second or 0))
    length = timedelta(minutes=1) if second is None else timedelta(seconds=1)
    begin = datetime.combine(on, at)
    if local_name:
        return _make_named_span(begin, length, local_name)
    return _make_span(begin, length, zone)


def _make_named_span(begin: datetime, length: timedelta, name: str) -> Span | None:
    """Take a local moment at which the zone has this name; None: it never has.

    The name tells which half of an hour that comes twice is meant.
    """
    begins = (begin.replace(fold=fold).astimezone() for fold in (0, 1))
    return next((Span(at, at + length) for at in begins if at.tzname() == name), None)


def _make_span(begin: datetime, length: timedelta, zone: tzinfo | None) -> Span:
    """Take a moment of a zone; None: this machine's."""
    ends = (begin, begin + length)
    return Span(
        *(end.replace(tzinfo=zone) if zone else end.astimezone() for end in ends)
    )
