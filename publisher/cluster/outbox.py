"""What should be on the bus, what is, and what is due: by subject.

Keeps the newest message of every object and a digest of what the bus holds, so that a
publisher that begins to lead says only what is different. Pure; knows no message.
A cousin of `nodeagent.agent_state`, which knows its messages and keeps no bodies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice


class Outbox:
    """Messages by subject; a subject without one tells that its object is gone."""

    def __init__(self) -> None:
        self._messages: dict[str, bytes] = {}
        """What should be on each subject."""
        self._versions: dict[str, int] = {}
        """Versions of the objects that are there, by subject."""
        self._on_bus: dict[str, bytes] | None = None
        """Digests; None: it is not known what the bus holds."""
        self._due: dict[str, int] = {}
        """Oldest first, each with the number of the change that made it due."""
        self.changes = 0
        """Counts what was taken in."""

    def __len__(self) -> int:
        return len(self._due)

    @property
    def published(self) -> int:
        """The number of the change up to which the bus holds everything."""
        if self._on_bus is None:
            return -1
        return next(iter(self._due.values()), self.changes + 1) - 1

    def has(self, subject: str, version: int) -> bool:
        """True if this version of an object, or a newer one, was put."""
        return 0 < version <= self._versions.get(subject, 0)

    def put(self, subject: str, data: bytes | None, version: int = 0) -> None:
        """Have this on a subject (None: that its object is gone).

        `version` is the object's, 0 once it is gone; one that was put changes nothing:
        answers to writes and the watch come in any order, and say the same twice.
        """
        if self.has(subject, version):
            return
        self.changes += 1
        self._versions[subject] = version
        if not version:
            del self._versions[subject]
        if data is None:
            self._messages.pop(subject, None)
        else:
            self._messages[subject] = data
        self._compare_subject(subject)

    def begin(self, on_bus: Mapping[str, bytes]) -> None:
        """Learn what the bus holds (messages that are not of gone objects)."""
        self._on_bus = {subject: digest(data) for subject, data in on_bus.items()}
        self._due.clear()
        for subject in (*self._on_bus, *self._messages):
            self._compare_subject(subject)

    def end(self) -> None:
        """Forget what the bus holds: another publisher writes there."""
        self._on_bus = None
        self._due.clear()

    def next(self, limit: int) -> Iterator[tuple[str, bytes | None]]:
        """Yield what is due, oldest first (None: say that it is gone).

        The caller publishes it and calls `done`.
        """
        for subject in islice(self._due, limit):
            yield subject, self._messages.get(subject)

    def done(self, published: Iterable[tuple[str, bytes | None]]) -> None:
        """Note what the bus holds now; what changed meanwhile stays due."""
        if self._on_bus is None:
            return
        for subject, data in published:
            if data is None:
                self._on_bus.pop(subject, None)
            else:
                self._on_bus[subject] = digest(data)
            self._compare_subject(subject)

    def _compare_subject(self, subject: str) -> None:
        if self._on_bus is None:
            return
        data = self._messages.get(subject)
        if self._on_bus.get(subject) == (None if data is None else digest(data)):
            self._due.pop(subject, None)
        else:
            self._due.setdefault(subject, self.changes)


def digest(data: bytes) -> bytes:
    """Return what is kept of a message that the bus holds."""
    return hashlib.blake2b(data, digest_size=16).digest()
