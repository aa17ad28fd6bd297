"""The words for how a device is."""

from __future__ import annotations

from collections.abc import Iterable

FREE, HELD, SHARED = "Free", "Held", "Shared"
SICK, TAINTED, AWAY = "Unhealthy", "Tainted", "Unavailable"
DRIFTED = "Drifted"
HEALTHY = "Healthy"
HEALTHS = (HEALTHY, "Unhealthy", "Unknown")
"""Health of devices as node agents report it; other drivers report none."""
STATES = (FREE, HELD, SHARED, SICK, TAINTED, AWAY, DRIFTED)
"""States of a device; those other than free may apply together.

What has drifted is used otherwise than was decided, and so may be free all the same."""
_WORST_FIRST = (AWAY, SICK, TAINTED, SHARED, HELD, FREE)


def worst_state(states: Iterable[str]) -> str:
    """Return the state that matters most to whoever wants the device."""
    return next(state for state in _WORST_FIRST if state in states)
