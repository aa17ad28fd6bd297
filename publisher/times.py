"""How long it is between times as objects hold them: in RFC 3339. Pure."""

from __future__ import annotations

from datetime import datetime

_LONG_AGO_S = float("inf")


def seconds_between(then: str, now: str) -> float:
    """Measure a time between two in RFC 3339; what cannot be read was long ago."""
    try:
        return (
            datetime.fromisoformat(now) - datetime.fromisoformat(then)
        ).total_seconds()
    except (TypeError, ValueError):
        return _LONG_AGO_S
