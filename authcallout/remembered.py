"""Answers that hold for some seconds, so that a storm of reconnects asks once each.

Bounded in number and age; time is an argument. Holds no token, only digests.
"""

from __future__ import annotations

from typing import Generic, TypeVar

V = TypeVar("V")


class Remembered(Generic[V]):
    """Values by key, each for `lifetime_s` after it was kept."""

    def __init__(self, lifetime_s: float, bound: int) -> None:
        self._lifetime_s = lifetime_s
        self._bound = bound
        self._kept: dict[bytes, tuple[float, V]] = {}

    def find(self, key: bytes, now_s: float) -> V | None:
        """Give what is still good, if anything is."""
        until_s, value = self._kept.get(key, (0.0, None))
        return value if now_s < until_s else None

    def keep(self, key: bytes, value: V, now_s: float) -> None:
        """Remember a value; the oldest go where there is no room."""
        # All live equally long, so the first is the oldest and the first to end.
        self._kept.pop(key, None)
        self._kept[key] = (now_s + self._lifetime_s, value)
        while len(self._kept) > self._bound or self._is_first_over(now_s):
            del self._kept[next(iter(self._kept))]

    def _is_first_over(self, now_s: float) -> bool:
        until_s, _ = next(iter(self._kept.values()), (now_s + 1, None))
        return until_s <= now_s
