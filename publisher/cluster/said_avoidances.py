"""What was said last of the nodes that each gang avoids, while it counts.

Forgotten as long after it was heard as the stream keeps it, so that names which never
come again leave nothing behind. Pure; times are of any clock that only grows.
"""

from __future__ import annotations

from contracts.avoidance import NodesAvoided
from contracts.topics import DAY_S

_Address = tuple[str, ...]


class SaidAvoidances:
    """The last message of each address, unless it is empty."""

    def __init__(self) -> None:
        self._said: dict[_Address, tuple[float, NodesAvoided]] = {}
        """Oldest first, each with when it was heard."""

    def __len__(self) -> int:
        return len(self._said)

    def note(
        self, address: _Address, message: NodesAvoided | None, now_s: float
    ) -> None:
        """Take in what is said (None: it was taken back), and drop what is too old."""
        self._said.pop(address, None)
        if message is not None and (message.nodes or message.recreations):
            self._said[address] = now_s, message
        while self._said:
            oldest, (heard_s, _) = next(iter(self._said.items()))
            if now_s - heard_s < DAY_S:
                break
            del self._said[oldest]

    def get(self, address: _Address, now_s: float) -> NodesAvoided | None:
        """Return the message of an address that still counts."""
        heard_s, message = self._said.get(address, (now_s, None))
        return message if now_s - heard_s < DAY_S else None
