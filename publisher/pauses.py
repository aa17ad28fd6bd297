"""How long to leave something alone that keeps failing or keeps being undone.

Pure: counts what it is told, takes the time as an argument. Stands alone because the
rule is the same for writes that fail and for edits that are repaired.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec import Struct

K = TypeVar("K", bound=Hashable)


class Pause(Struct, frozen=True, kw_only=True):
    """The first times are free, then each pause is twice as long as the last."""

    free: int
    first_s: float
    most_s: float
    forgotten_s: float
    """After so long without another time, counting begins again."""


UNDONE = Pause(free=3, first_s=1.0, most_s=30.0, forgotten_s=60.0)
"""For what others undo: repaired at once, but no fight at full speed for ever."""


class Pauses(Generic[K]):
    """How often each key came up, and when it did last."""

    def __init__(self, pause: Pause) -> None:
        self._pause = pause
        self._times: dict[K, tuple[int, float]] = {}

    def next_s(self, key: K, now_s: float) -> float:
        """Count one more time; returns how long the key is to be left alone."""
        count, last_s = self._times.get(key, (0, now_s))
        if now_s - last_s > self._pause.forgotten_s:
            count = 0
        self._times[key] = (count + 1, now_s)
        doublings = count - self._pause.free
        if doublings < 0:
            return 0.0
        longest_s = self._pause.most_s
        return float(min(longest_s, self._pause.first_s * 2 ** min(doublings, 32)))

    def forget(self, key: K) -> None:
        """Begin again for a key."""
        self._times.pop(key, None)
