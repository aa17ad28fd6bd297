"""Counters of errors that rise: an error is over when it is seen, so it is remembered.

Pure; moments are arguments.
"""

from __future__ import annotations

from msgspec import Struct


class Rise(Struct, frozen=True):
    """The record of a counter."""

    count: int
    risen_at_s: float | None = None
    """When it was last seen to have risen; None: not since this process looks."""
    rise: int = 0
    """By how much, in all."""


def follow(before: Rise | None, count: int, now_s: float) -> Rise:
    """Take one reading of a counter into account.

    The first is where counting begins, as nobody knows how old its errors are, and so
    is one that is lower than the last: the device was reset.
    """
    if before is None or count < before.count:
        return Rise(count)
    if count == before.count:
        return before
    return Rise(count, now_s, before.rise + count - before.count)


def is_recent(rise: Rise, hold_s: float, now_s: float) -> bool:
    """True if it rose less than `hold_s` ago."""
    return rise.risen_at_s is not None and now_s - rise.risen_at_s < hold_s
