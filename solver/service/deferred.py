"""Gates that opened, kept back until the state that they speak of has been read.

With its gates open a gang holds what Kubernetes says of its claims and pods. Streams
are read each at its own pace, so what STATE holds of them may still be to come; until
then the decision counts. What is doubtful is kept back longer, which takes too much for
a while and never too little.
"""

from __future__ import annotations

from contracts.ids import GangUID
from contracts.messages import ConfirmationMessage, GatesOpened
from solver.snapshot.snapshot import SnapshotMessage


class Openings:
    """What is kept back, and how far STATE has been read."""

    def __init__(self) -> None:
        self._kept: dict[GangUID, tuple[GatesOpened, int]] = {}
        self._state = 0

    def keeps(self, message: SnapshotMessage, sequence: int) -> bool:
        """Keep a message back if it is too early; the last word on a gang counts.

        `sequence` is its place in its stream.
        """
        if not isinstance(message, ConfirmationMessage):
            return False
        self._kept.pop(message.uid, None)
        if not isinstance(message, GatesOpened) or message.state <= self._state:
            return False
        self._kept[message.uid] = message, sequence
        return True

    def read(self, sequence: int) -> list[tuple[GatesOpened, int]]:
        """Note how far STATE has been read; gives what need not be kept back any more.

        A stream that was made anew begins again: what was said of the one before is
        kept back until the new one is as long.
        """
        self._state = sequence
        ready = [kept for kept in self._kept.values() if kept[0].state <= sequence]
        for message, _ in ready:
            del self._kept[message.uid]
        return ready
