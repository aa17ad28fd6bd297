"""When a child process that ended is started again. Pure.

Ends are counted in a window of time: pauses grow while a child does not stay up, and
are short again for what dies now and then.
"""

from __future__ import annotations

from collections import deque

WINDOW_S = 300.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0


class Restarts:
    """The ends of one child, as far as they count."""

    def __init__(self) -> None:
        self._ends_s: deque[float] = deque()

    @property
    def ends(self) -> int:
        """How often it ended within the window."""
        return len(self._ends_s)

    def note_end(self, now_s: float) -> float:
        """Note an end; returns the seconds to wait before the next start.

        They double with each end in the window, up to half a minute.
        """
        while self._ends_s and self._ends_s[0] <= now_s - WINDOW_S:
            self._ends_s.popleft()
        self._ends_s.append(now_s)
        return float(min(_FIRST_PAUSE_S * 2 ** (self.ends - 1), _LONGEST_PAUSE_S))
