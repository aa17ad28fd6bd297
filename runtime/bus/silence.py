"""Subjects of which nothing was heard for long; pure.

Readers age what was said, and the server tells them nothing of it: messages that say
when they end, and markers of their end, need a stream in which one sender can remove
what the others sent.
"""

from __future__ import annotations


class Silence:
    """When each subject was last heard of, while we could hear.

    Times are seconds of one monotonic clock.
    """

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._heard_s: dict[str, float] = {}
        """The longest silent first."""
        self._connection = 0
        self._since_s = 0.0
        """Since when we can hear."""

    def note(self, subject: str, now_s: float) -> None:
        """Note that something was said on a subject."""
        self._heard_s.pop(subject, None)
        self._heard_s[subject] = now_s

    def take_ended(self, connection: int, now_s: float) -> tuple[str, ...]:
        """Forget the subjects that were silent for too long, and name them.

        `connection` numbers the connection, 0 while there is none: after each new one
        every subject gets its full time again.
        """
        if connection != self._connection:
            self._connection, self._since_s = connection, now_s
        if not connection or now_s - self._since_s < self._lasts_s:
            return ()
        ended: list[str] = []
        for subject, heard_s in self._heard_s.items():
            if now_s - heard_s < self._lasts_s:
                break
            ended.append(subject)
        for subject in ended:
            del self._heard_s[subject]
        return tuple(ended)
