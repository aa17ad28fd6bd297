"""Which notes were written lately: few events, but never none while something holds.

An event lives for an hour in the API server, and what a pod waits for changes its
numbers all the time. So a reason is told once, again when its words have changed and
some minutes have passed, and again before the last event of it is forgotten. Pure.
"""

from __future__ import annotations

from collections import OrderedDict

from publisher.cluster.plan_status import Note

CHANGED_S = 300.0
SAME_S = 2700.0
_REMEMBERED = 100_000


class Said:
    """The last note of each reason about each object, and when it was written."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, ...], tuple[str, float]] = OrderedDict()

    def is_due(self, note: Note, now_s: float) -> bool:
        """Whether a note is news; `now_s` is of any clock that only grows."""
        last = self._last.get(_key(note))
        if last is None:
            return True
        message, then_s = last
        pause_s = SAME_S if message == note.message else CHANGED_S
        return not note.once and now_s - then_s >= pause_s

    def remember(self, note: Note, now_s: float) -> None:
        """Note that a note was written."""
        self._last[_key(note)] = (note.message, now_s)
        self._last.move_to_end(_key(note))
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)


def _key(note: Note) -> tuple[str, ...]:
    """Say what is told at most once at a time; what happened, once and for all."""
    return (note.about.uid, note.reason, note.message if note.once else "")
