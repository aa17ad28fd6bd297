"""A few results by key, so that what is remembered of a part never grows for ever."""

from __future__ import annotations

from typing import Any, TypeVar

V = TypeVar("V")

MEMO_SIZE = 128


class Memo(dict[Any, Any]):
    """Results of pure functions about one thing; the oldest is forgotten first.

    A result must not refer to that thing: the worker collects cycles late or never, so
    whatever is replaced must be free by counting references.
    """

    def keep(self, key: object, value: V) -> V:
        """Remember a result and give it back."""
        if len(self) >= MEMO_SIZE and key not in self:
            del self[next(iter(self))]
        self[key] = value
        return value
