"""How often each node is listened to: one that always says something new has to wait.

A message of a node costs decoding, a page of the Snapshot, and gangs that are tried
again. Each says all that its sender has to say on its subject, so the last of several
is enough: messages beyond the rate are passed over unread, and once the subject has its
turn again its last message is read. Pure; times are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections import Counter

BURST = 20
"""So many messages of a subject are read at once."""
EVERY_S = 1.0
"""Then one each so many seconds."""


class Pace:
    """Which messages are read, subject by subject."""

    def __init__(self) -> None:
        self._full_s: dict[str, float] = {}
        """When each subject may have a whole burst again; the others may have it."""
        self._behind: set[str] = set()
        """Subjects whose last message was passed over."""
        self._passed: Counter[str] = Counter()

    def passes_over(self, subject: str, now_s: float) -> bool:
        """Count a message; True if it is not to be read."""
        if self._take_turn(subject, now_s):
            self._behind.discard(subject)
            return False
        self._behind.add(subject)
        self._passed[subject] += 1
        return True

    def take_due(self, now_s: float) -> list[str]:
        """Return the subjects whose last message is to be read now."""
        due = [each for each in sorted(self._behind) if self._take_turn(each, now_s)]
        self._behind.difference_update(due)
        full_s = self._full_s
        self._full_s = {each: at for each, at in full_s.items() if at > now_s}
        return due

    def put_back(self, subject: str) -> None:
        """Note that the last message of a due subject could not be read."""
        self._behind.add(subject)

    def take_passed(self) -> Counter[str]:
        """Return how many messages were passed over since the last call, by subject."""
        passed, self._passed = self._passed, Counter()
        return passed

    def _take_turn(self, subject: str, now_s: float) -> bool:
        """Let a subject have a message read, if it may."""
        full_s = max(self._full_s.get(subject, now_s), now_s)
        if full_s - now_s > (BURST - 1) * EVERY_S:
            return False
        self._full_s[subject] = full_s + EVERY_S
        return True
