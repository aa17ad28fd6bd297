"""Whose turn it is: priority, then namespace after namespace, then age.

Namespaces take turns within a priority, so that a backlog costs its own namespace
alone. The rotation goes on where it stopped, whatever came in between.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict

from msgspec import Struct

from contracts.ids import GangKey, GangUID, Namespace

Line = list[tuple[int, GangUID]]
"""The gangs of one namespace and priority, youngest first: (minus its age, uid)."""


class Ticket(Struct, frozen=True, kw_only=True):
    """What decides about a gang's turn."""

    gang: GangKey
    priority: int
    age: int
    """Its place in the stream of submissions: less is older."""
    pods: int
    grows: bool = False
    """True if the gang is in already, and could have more pods."""


class Turns:
    """Gangs by their turns; each step costs the logarithm of what waits."""

    def __init__(self) -> None:
        self._tickets: dict[GangKey, Ticket] = {}
        self._lines: dict[int, OrderedDict[Namespace, Line]] = {}
        """By priority and namespace; the namespace whose turn it is comes first."""
        self._priorities: list[int] = []
        """Ascending."""
        self._passed_over: list[tuple[int, Namespace, Line]] = []

    def __len__(self) -> int:
        return len(self._tickets)

    def get(self, gang: GangKey) -> Ticket | None:
        """Look a gang up; None: it is not here."""
        return self._tickets.get(gang)

    def put(self, ticket: Ticket) -> None:
        """Line a gang up; a namespace without a line joins the rotation at its end."""
        self.remove(ticket.gang)
        self._tickets[ticket.gang] = ticket
        if ticket.priority not in self._lines:
            self._lines[ticket.priority] = OrderedDict()
            insort(self._priorities, ticket.priority)
        line = self._lines[ticket.priority].setdefault(ticket.gang.namespace, [])
        insort(line, (-ticket.age, ticket.gang.uid))

    def remove(self, gang: GangKey) -> Ticket | None:
        """Take a gang out, wherever it stands; None: it is not here."""
        ticket = self._tickets.pop(gang, None)
        if ticket is None:
            return None
        line = self._lines[ticket.priority][gang.namespace]
        del line[bisect_left(line, (-ticket.age, gang.uid))]
        self._drop_empty(ticket)
        return ticket

    def peek(self) -> Ticket | None:
        """Return the gang whose turn it is; None: nobody waits."""
        if not self._priorities:
            return None
        lines = self._lines[self._priorities[-1]]
        namespace, line = next(iter(lines.items()))
        return self._tickets[GangKey(namespace, line[-1][1])]

    def take(self) -> Ticket | None:
        """Take the gang out whose turn it is; the next turn is another namespace's."""
        ticket = self.peek()
        if ticket is not None:
            self._lines[ticket.priority].move_to_end(ticket.gang.namespace)
            self.remove(ticket.gang)
        return ticket

    def pass_over(self) -> None:
        """Leave out the line whose turn it is, until `resume`."""
        priority = self._priorities[-1]
        namespace, line = self._lines[priority].popitem(last=False)
        self._passed_over.append((priority, namespace, line))
        if not self._lines[priority]:
            del self._lines[priority]
            self._priorities.pop()

    def resume(self) -> None:
        """Let those who were passed over be first again: their turn was not used."""
        while self._passed_over:
            priority, namespace, line = self._passed_over.pop()
            if priority not in self._lines:
                self._lines[priority] = OrderedDict()
                insort(self._priorities, priority)
            self._lines[priority][namespace] = line
            self._lines[priority].move_to_end(namespace, last=False)

    def _drop_empty(self, ticket: Ticket) -> None:
        lines = self._lines[ticket.priority]
        if not lines[ticket.gang.namespace]:
            del lines[ticket.gang.namespace]
        if not lines:
            del self._lines[ticket.priority]
            del self._priorities[bisect_left(self._priorities, ticket.priority)]
