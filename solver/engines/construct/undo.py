"""What was taken so far, by key; whatever is written can be taken back."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

T = TypeVar("T")
Table = dict[Hashable, T]


class UndoLog:
    """Remembers what tables had before; `mark` a place and `undo` down to it."""

    def __init__(self) -> None:
        self._before: list[tuple[dict[Hashable, object], Hashable, object]] = []

    @property
    def mark(self) -> int:
        """The place that `undo` comes back to."""
        return len(self._before)

    def write(self, table: Table[T], key: Hashable, value: T) -> None:
        """Set an entry of a table."""
        # Of what type the values are is no matter here: they come back as they were.
        self._before.append((table, key, table.get(key, self)))  # type: ignore[arg-type]
        table[key] = value

    def undo(self, mark: int) -> None:
        """Take back what was written since a place was marked."""
        while len(self._before) > mark:
            table, key, value = self._before.pop()
            if value is self:
                del table[key]
            else:
                table[key] = value
