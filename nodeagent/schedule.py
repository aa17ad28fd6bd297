"""The schedule of what many nodes do once an interval each, spread evenly over it.

Pure: the shell says which span of time has passed. Each node comes exactly once an
interval, however unevenly the shell asks.
"""

from __future__ import annotations

from hashlib import sha256
from math import floor


def list_due(
    count: int, interval_s: float, phase: float, since_s: float, now_s: float
) -> tuple[int, ...]:
    """List the indices, of `count`, whose moment lies in (since, now].

    After a span longer than the interval everybody comes once. `phase`, from 0 to 1,
    shifts everybody, so that processes with equal intervals do not beat together.
    """
    if count == 0 or now_s <= since_s:
        return ()
    first = _position_at(count, interval_s, phase, since_s) + 1
    last = _position_at(count, interval_s, phase, now_s)
    first = max(first, last - count + 1)
    return tuple(position % count for position in range(first, last + 1))


def phase_of(name: str) -> float:
    """Return the phase of a name, from 0 to 1, the same in every run."""
    return int.from_bytes(sha256(name.encode()).digest()[:6]) / 2**48


def _position_at(count: int, interval_s: float, phase: float, at_s: float) -> int:
    return floor((at_s / interval_s - phase) * count)


def is_due(last_s: float | None, every_s: float, now_s: float) -> bool:
    """True if something last done at `last_s` (None: never) is due again."""
    return last_s is None or now_s - last_s >= every_s
