"""What is to be looked at, and when: each key once, the earliest first.

Pure; times are of any clock that only grows.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from itertools import count
from math import inf
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class DelayQueue(Generic[K]):
    """Keys by the time at which each is due."""

    def __init__(self) -> None:
        self._due_s: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = count()

    def put(self, key: K, due_s: float) -> None:
        """Look at a key then, not at the time that was set before."""
        self._due_s[key] = due_s
        heapq.heappush(self._heap, (due_s, next(self._numbers), key))

    def put_by(self, key: K, due_s: float) -> None:
        """Look at a key then at the latest."""
        if self._due_s.get(key, inf) > due_s:
            self.put(key, due_s)

    def clear(self) -> None:
        """Forget all keys."""
        self._due_s.clear()
        self._heap.clear()

    def next_s(self) -> float | None:
        """Return the earliest time; None: there is nothing to look at."""
        # A key that was put again left its old place in the heap.
        while self._heap and self._due_s.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self) -> K:
        """Return the key of the earliest time and forget it; there must be one."""
        self.next_s()
        _, _, key = heapq.heappop(self._heap)
        del self._due_s[key]
        return key
