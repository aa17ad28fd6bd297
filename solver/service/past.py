"""Gangs that were over before we began: of them nothing is kept but who they are.

So a start needs memory for what lives, however much the streams still hold of what was.
Decisions are read first; what else is said of a gang that they say is over is passed
over, until everything has been read.
"""

from __future__ import annotations

from contracts.ids import GangUID, Namespace
from contracts.lifecycle import LifecycleMessage
from contracts.messages import DecisionMessage, GangRejected, GangReleased, SubmitGang


class PastGangs:
    """Who they are, while everything is read."""

    def __init__(self) -> None:
        self._gangs: set[str] = set()
        self._is_open = True

    def takes(self, message: LifecycleMessage, *, is_known: bool) -> bool:
        """Whether a message is about such a gang, and so changes nothing.

        `is_known` says that something else is kept of the gang already.
        """
        if not self._is_open:
            return False
        if isinstance(message, SubmitGang):
            namespace = Namespace(message.gang.metadata.namespace)
        else:
            namespace = message.namespace
        gang = _name(namespace, message.uid)
        if isinstance(message, GangReleased | GangRejected) and not is_known:
            self._gangs.add(gang)
        elif isinstance(message, DecisionMessage):
            self._gangs.discard(gang)
        return gang in self._gangs

    def has(self, namespace: Namespace, uid: GangUID) -> bool:
        """Whether this is one of them."""
        return _name(namespace, uid) in self._gangs

    def close(self) -> None:
        """Everything was read: whatever is said from now on counts."""
        self._is_open = False
        self._gangs = set()


def _name(namespace: Namespace, uid: GangUID) -> str:
    return f"{namespace}/{uid}"
