"""Gangs that were over before a process began: of them only who they are is kept.

The streams hold them for a day and longer, and there may be very many. A start that
knows them passes over what else is said of them by its subject alone, unread, so that
its time and memory follow what lives. Pure.
"""

from __future__ import annotations

from contracts.ids import GangKey

_TOKENS = 5
"""`<entity>.v1.<cluster>.<namespace>.<uid>`."""


class PastGangs:
    """The past gangs, while everything is read for the first time."""

    def __init__(self) -> None:
        self._gangs: set[str] = set()
        """As `str` of a GangKey: one text each."""
        self.is_open = True
        """True until everything has been read."""

    def add(self, gang: GangKey) -> None:
        """Note that a gang was over."""
        if self.is_open:
            self._gangs.add(str(gang))

    def discard(self, gang: GangKey) -> None:
        """Note that a gang of this name lives."""
        self._gangs.discard(str(gang))

    def has(self, gang: GangKey) -> bool:
        """True if the gang is past."""
        return str(gang) in self._gangs

    def skips(self, subject: str) -> bool:
        """True if a message on this subject is about a past gang.

        A name that is escaped in its subject is never skipped: who reads the message
        finds out.
        """
        if not self._gangs or "_" in subject or "=" in subject:
            return False
        tokens = subject.split(".")
        return len(tokens) == _TOKENS and f"{tokens[3]}/{tokens[4]}" in self._gangs

    def close(self) -> None:
        """Everything was read: whatever is said from now on counts."""
        self.is_open = False
        self._gangs = set()
