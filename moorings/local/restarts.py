"""When a child process that ended is started again, and when it is given up. Pure.

Ends are counted in a window of time: what dies now and then runs on for weeks, what
does not stay up is given up within a minute.
"""

from __future__ import annotations

from collections import deque

WINDOW_S = 300.0
MOST_ENDS = 5
"""Within the window; with one more the child is given up."""
_FIRST_PAUSE_S = 0.5


class Restarts:
    """The ends of one child, as far as they count."""

    def __init__(self) -> None:
        self._ends_s: deque[float] = deque()

    def note_end(self, now_s: float, most_ends: int = MOST_ENDS) -> float | None:
        """Note an end; returns the seconds to wait before the next start.

        They double with each end in the window. None: it ended more than `most_ends`
        times within it.
        """
        while self._ends_s and self._ends_s[0] <= now_s - WINDOW_S:
            self._ends_s.popleft()
        self._ends_s.append(now_s)
        if len(self._ends_s) > most_ends:
            return None
        return float(_FIRST_PAUSE_S * 2 ** (len(self._ends_s) - 1))
