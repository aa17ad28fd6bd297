"""Who is first of all that wait in a queue, tried or not.

Source: Kueue's concept "ClusterQueue", StrictFIFO.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from contracts.ids import GangKey
from solver.queueing.turns import Rank, Ticket

Place = tuple[Rank, int, GangKey]
"""The rank, minus the age, whose it is: the greatest is first."""


class QueueLines:
    """All gangs that wait, by ClusterQueue."""

    def __init__(self) -> None:
        self._lines: dict[str, list[Place]] = {}
        self._tickets: dict[GangKey, Ticket] = {}

    def put(self, ticket: Ticket) -> None:
        """Let a gang wait; one without a queue is not noted."""
        if ticket.queue:
            self._tickets[ticket.gang] = ticket
            insort(self._lines.setdefault(ticket.queue, []), _place_of(ticket))

    def remove(self, gang: GangKey) -> None:
        """Let a gang wait no more."""
        ticket = self._tickets.pop(gang, None)
        if ticket is not None:
            line = self._lines[ticket.queue]
            del line[bisect_left(line, _place_of(ticket))]

    def queue_of(self, gang: GangKey) -> str:
        """Name the queue of a gang that waits; empty: it has none."""
        ticket = self._tickets.get(gang)
        return "" if ticket is None else ticket.queue

    def is_first(self, gang: GangKey) -> bool:
        """True if no other gang of its queue comes before it."""
        ticket = self._tickets.get(gang)
        return ticket is None or self._lines[ticket.queue][-1] == _place_of(ticket)

    def count_before(self, gang: GangKey) -> int:
        """Count the gangs of its queue that come before it."""
        ticket = self._tickets.get(gang)
        if ticket is None:
            return 0
        line = self._lines[ticket.queue]
        return len(line) - 1 - bisect_left(line, _place_of(ticket))

    def count_above(self, ticket: Ticket) -> int:
        """Count the gangs of a queue whose rank is higher than one's."""
        line = self._lines.get(ticket.queue, ())
        return len(line) - bisect_right(line, ticket.rank, key=lambda each: each[0])

    def count(self, queue: str) -> int:
        """Count the gangs that wait in a queue."""
        return len(self._lines.get(queue, ()))

    def list_before(self, gang: GangKey, most: int) -> list[GangKey]:
        """List the first gangs of its queue that come before it, the first at front."""
        ticket = self._tickets.get(gang)
        if ticket is None:
            return []
        line = self._lines[ticket.queue]
        first = line[: -most - 1 : -1][: self.count_before(gang)]
        return [each for _, _, each in first]


def _place_of(ticket: Ticket) -> Place:
    return (ticket.rank, -ticket.age, ticket.gang)
