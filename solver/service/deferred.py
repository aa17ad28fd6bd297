"""Confirmations that gates opened, deferred until STATE has been read so far.

With its gates open a gang holds what Kubernetes says of its claims and pods. Streams
are read each at its own pace, so what STATE holds of them may still be to come; until
then the decision counts. What is doubtful is kept back longer, which takes too much for
a while and never too little.
"""

from __future__ import annotations

from contracts.ids import GangKey
from contracts.messages import ConfirmationMessage, GatesOpened
from solver.snapshot.snapshot import SnapshotMessage


class DeferredConfirmations:
    """What is deferred, and how far STATE has been read.

    The caller applies what `defer` does not take at once, and what `release` returns
    when it does.
    """

    def __init__(self) -> None:
        self._deferred: dict[GangKey, tuple[GatesOpened, int]] = {}
        self._state_sequence = 0

    def defer(self, message: SnapshotMessage, sequence: int) -> bool:
        """Keep a message if it is too early, and return whether it was.

        `sequence` is its place in its stream. The last confirmation of a gang counts.
        """
        if not isinstance(message, ConfirmationMessage):
            return False
        self._deferred.pop(message.key, None)
        if (
            not isinstance(message, GatesOpened)
            or message.state <= self._state_sequence
        ):
            return False
        self._deferred[message.key] = message, sequence
        return True

    def release(self, sequence: int) -> list[tuple[GatesOpened, int]]:
        """Note how far STATE has been read; return what is due now, with sequences.

        A stream that was made anew begins again: what was said of the one before is
        deferred until the new one is as long.
        """
        self._state_sequence = sequence
        due = [entry for entry in self._deferred.values() if entry[0].state <= sequence]
        for message, _ in due:
            del self._deferred[message.key]
        return due
