"""Whose turn it is: priority, then namespace after namespace, then age.

Within a priority, pods that running gangs have lost come before all others.

Namespaces take turns within a priority, so that a backlog costs its own namespace
alone. The rotation goes on where it stopped, whatever came in between.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict

from msgspec import Struct

from contracts.ids import GangKey, GangUID, Namespace

Rank = tuple[int, bool]
"""Priority, and whether lost pods are replaced: the greater comes first."""
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
    replaces: bool = False
    """True if it asks for pods that a running gang has lost."""

    @property
    def rank(self) -> Rank:
        """What counts before namespace and age."""
        return (self.priority, self.replaces)


class Turns:
    """Gangs by their turns; each step costs the logarithm of what waits."""

    def __init__(self) -> None:
        self._tickets: dict[GangKey, Ticket] = {}
        self._lines: dict[Rank, OrderedDict[Namespace, Line]] = {}
        """By rank and namespace; the namespace whose turn it is comes first."""
        self._ranks: list[Rank] = []
        """Ascending."""
        self._passed_over: list[tuple[Rank, Namespace, Line]] = []

    def __len__(self) -> int:
        return len(self._tickets)

    def get(self, gang: GangKey) -> Ticket | None:
        """Look a gang up; None: it is not here."""
        return self._tickets.get(gang)

    def put(self, ticket: Ticket) -> None:
        """Line a gang up; a namespace without a line joins the rotation at its end."""
        self.remove(ticket.gang)
        self._tickets[ticket.gang] = ticket
        rank = ticket.rank
        if rank not in self._lines:
            self._lines[rank] = OrderedDict()
            insort(self._ranks, rank)
        line = self._lines[rank].setdefault(ticket.gang.namespace, [])
        insort(line, (-ticket.age, ticket.gang.uid))

    def remove(self, gang: GangKey) -> Ticket | None:
        """Take a gang out, wherever it stands; None: it is not here."""
        ticket = self._tickets.pop(gang, None)
        if ticket is None:
            return None
        line = self._lines[ticket.rank][gang.namespace]
        del line[bisect_left(line, (-ticket.age, gang.uid))]
        self._drop_empty(ticket)
        return ticket

    def peek(self) -> Ticket | None:
        """Return the gang whose turn it is; None: nobody waits."""
        if not self._ranks:
            return None
        lines = self._lines[self._ranks[-1]]
        namespace, line = next(iter(lines.items()))
        return self._tickets[GangKey(namespace, line[-1][1])]

    def take(self) -> Ticket | None:
        """Take the gang out whose turn it is; the next turn is another namespace's."""
        ticket = self.peek()
        if ticket is not None:
            self._lines[ticket.rank].move_to_end(ticket.gang.namespace)
            self.remove(ticket.gang)
        return ticket

    def pass_over(self) -> None:
        """Leave out the line whose turn it is, until `resume`."""
        rank = self._ranks[-1]
        namespace, line = self._lines[rank].popitem(last=False)
        self._passed_over.append((rank, namespace, line))
        if not self._lines[rank]:
            del self._lines[rank]
            self._ranks.pop()

    def pass_over_rank(self, rank: Rank) -> None:
        """Leave out all of a rank, until `resume`."""
        lines = self._lines.pop(rank, None)
        if lines is not None:
            del self._ranks[bisect_left(self._ranks, rank)]
            self._passed_over += [(rank, name, lines[name]) for name in lines]

    def resume(self) -> None:
        """Let those who were passed over be first again: their turn was not used."""
        while self._passed_over:
            rank, namespace, line = self._passed_over.pop()
            if rank not in self._lines:
                self._lines[rank] = OrderedDict()
                insort(self._ranks, rank)
            self._lines[rank][namespace] = line
            self._lines[rank].move_to_end(namespace, last=False)

    def find_replacing(self) -> Rank | None:
        """Find the highest rank of those that replace lost pods; None: nobody does."""
        return next((rank for rank in reversed(self._ranks) if rank[1]), None)

    def has_below(self, rank: Rank) -> bool:
        """True if somebody of a lower rank is lined up."""
        return bool(self._ranks) and self._ranks[0] < rank

    def _drop_empty(self, ticket: Ticket) -> None:
        rank = ticket.rank
        lines = self._lines[rank]
        if not lines[ticket.gang.namespace]:
            del lines[ticket.gang.namespace]
        if not lines:
            del self._lines[rank]
            del self._ranks[bisect_left(self._ranks, rank)]
