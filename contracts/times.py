"""Times as messages and objects hold them: RFC 3339. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def read_time(text: str) -> float:
    """Read a time, in seconds since the epoch; 0: it is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def write_time(time_s: int) -> str:
    """Write a whole second since the epoch, in UTC."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
