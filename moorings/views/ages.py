"""How old things are, as kubectl writes it."""

from __future__ import annotations

from datetime import UTC, datetime


def read_clock() -> float:
    """Return the seconds since the epoch."""
    return datetime.now(UTC).timestamp()


def measure_age(since: str) -> float:
    """Return the seconds since a time of RFC 3339; 0: it is none."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def format_age(seconds: float) -> str:
    """Write an age as kubectl does: the two largest units at most."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 120:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 48:
        return f"{hours}h{minutes % 60}m"
    return f"{hours // 24}d{hours % 24}h"
