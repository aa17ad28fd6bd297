"""Gangs that were over before we began: of them nothing is kept but who they are.

So a start needs memory for what lives, however much the streams still hold of what was.
Decisions are read first; what else is said of a gang that they say is over is passed
over, until everything has been read.
"""

from __future__ import annotations

from contracts.ids import GangKey
from contracts.lifecycle import LifecycleMessage
from contracts.messages import DecisionMessage, GangRejected, GangReleased


class PastGangs:
    """Who they are, while everything is read."""

    def __init__(self) -> None:
        self._gangs: set[str] = set()
        """As `str` of a GangKey: one text each, of which there may be many."""
        self._is_open = True

    def takes(self, message: LifecycleMessage, *, is_known: bool) -> bool:
        """Whether a message is about such a gang, and so changes nothing.

        `is_known` says that something else is kept of the gang already.
        """
        if not self._is_open:
            return False
        gang = str(message.key)
        if isinstance(message, GangReleased | GangRejected) and not is_known:
            self._gangs.add(gang)
        elif isinstance(message, DecisionMessage):
            self._gangs.discard(gang)
        return gang in self._gangs

    def has(self, gang: GangKey) -> bool:
        """Whether this is one of them."""
        return str(gang) in self._gangs

    def close(self) -> None:
        """Everything was read: whatever is said from now on counts."""
        self._is_open = False
        self._gangs = set()
