"""Which events are due: few, but never none while what they say holds.

An event lives for an hour in the API server, and what a pod waits for changes its
numbers all the time. So a reason is told once, again when its words have changed and
some minutes have passed, and again before the last event of it is forgotten. What is
usually over in a moment is told when its words have not changed for some. Pure; times
are of any clock that only grows.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from publisher.gangs.notes import Note

CHANGED_S = 300.0
SAME_S = 2700.0
_REMEMBERED = 100_000
T = TypeVar("T")


class EventThrottle:
    """The last note of each reason about each object, and when it was written."""

    def __init__(self) -> None:
        self._last: _Recent[tuple[str, float]] = _Recent()
        self._untold: _Recent[tuple[str, float]] = _Recent()
        """Words that were not told yet, and since when they stay the same."""

    def due_in_s(self, note: Note, now_s: float) -> float:
        """Return how long a note has still to wait; 0: it is due.

        The caller writes it then, and calls `remember`.
        """
        key = _key_of_note(note)
        last = self._last.get(key)
        if last is not None:
            message, then_s = last
            pause_s = SAME_S if message == note.message else CHANGED_S
            return SAME_S if note.once else max(0.0, then_s + pause_s - now_s)
        if not note.after_s:
            return 0.0
        untold = self._untold.get(key)
        if untold is None or untold[0] != note.message:
            self._untold[key] = untold = (note.message, now_s)
        return max(0.0, untold[1] + note.after_s - now_s)

    def remember(self, note: Note, now_s: float) -> None:
        """Note that a note was written."""
        self._last[_key_of_note(note)] = (note.message, now_s)
        self._untold.pop(_key_of_note(note), None)


class _Recent(OrderedDict[tuple[str, ...], T], Generic[T]):
    """A bounded dict that keeps its newest entries."""

    def __setitem__(self, key: tuple[str, ...], value: T) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > _REMEMBERED:
            self.popitem(last=False)


def _key_of_note(note: Note) -> tuple[str, ...]:
    """Return the key of a note: it is told once at a time, or once if it happened."""
    return (note.regarding.uid, note.reason, note.message if note.once else "")
