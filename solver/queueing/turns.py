"""Whose turn it is: priority, then queue, or namespace after namespace, then age.

Within a priority, pods that running gangs have lost come before all others.

Namespaces take turns within a priority, so that a backlog costs its own namespace
alone. The rotation goes on where it stopped, whatever came in between. Gangs of one
ClusterQueue are one line, and whoever asks chooses among those.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from contracts.ids import GangKey, Namespace

Rank = tuple[int, bool]
"""Priority, and whether lost pods are replaced: the greater comes first."""
Line = list[tuple[int, GangKey]]
"""The gangs of one line and priority, youngest first: (minus its age, whose it is)."""
LineName = tuple[str, Namespace]
"""A ClusterQueue, or where there is none a namespace."""


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
    queue: str = ""
    """Its ClusterQueue; empty: none."""

    @property
    def line(self) -> LineName:
        """The line in which it waits."""
        return (self.queue, Namespace("") if self.queue else self.gang.namespace)

    @property
    def rank(self) -> Rank:
        """What counts before namespace and age."""
        return (self.priority, self.replaces)


class RankLines(OrderedDict[LineName, Line]):
    """The lines of one rank; that whose turn it is comes first."""

    __slots__ = ("added",)

    def __init__(self) -> None:
        super().__init__()
        self.added = 0
        """Counts the lines and gangs that came, not those that went."""

    def head(self, name: LineName) -> tuple[int, GangKey]:
        """Return the age of the first gang of a line, and which it is."""
        age, gang = self[name][-1]
        return -age, gang


Pick = Callable[[RankLines], LineName]
"""Chooses the line of a rank whose turn it is; at least one is there."""


def pick_first(lines: RankLines) -> LineName:
    """Choose the line that waits for longest."""
    return next(iter(lines))


class Turns:
    """Gangs by their turns; each step costs the logarithm of what waits."""

    def __init__(self) -> None:
        self._tickets: dict[GangKey, Ticket] = {}
        self._lines: dict[Rank, RankLines] = {}
        """By rank and line; the line whose turn it is comes first."""
        self._ranks: list[Rank] = []
        """Ascending."""
        self._passed_over: list[tuple[Rank, LineName, Line]] = []

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
            self._lines[rank] = RankLines()
            insort(self._ranks, rank)
        self._lines[rank].added += 1
        line = self._lines[rank].setdefault(ticket.line, [])
        insort(line, (-ticket.age, ticket.gang))

    def remove(self, gang: GangKey) -> Ticket | None:
        """Take a gang out, wherever it stands; None: it is not here."""
        ticket = self._tickets.pop(gang, None)
        if ticket is None:
            return None
        line = self._lines[ticket.rank][ticket.line]
        del line[bisect_left(line, (-ticket.age, gang))]
        self._drop_empty(ticket)
        return ticket

    def peek(self, pick: Pick = pick_first) -> Ticket | None:
        """Return the gang whose turn it is; None: nobody waits.

        `pick` chooses among the lines of the highest rank.
        """
        if not self._ranks:
            return None
        lines = self._lines[self._ranks[-1]]
        _, gang = lines.head(pick(lines))
        return self._tickets[gang]

    def take(self, ticket: Ticket) -> None:
        """Take the gang out whose turn it is; the next turn is another line's."""
        self._lines[ticket.rank].move_to_end(ticket.line)
        self.remove(ticket.gang)

    def pass_over(self, ticket: Ticket) -> None:
        """Leave out the line whose turn it is, until `resume`."""
        rank, name = ticket.rank, ticket.line
        self._passed_over.append((rank, name, self._lines[rank].pop(name)))
        if not self._lines[rank]:
            del self._lines[rank]
            del self._ranks[bisect_left(self._ranks, rank)]

    def pass_over_rank(self, rank: Rank) -> None:
        """Leave out all of a rank, until `resume`."""
        lines = self._lines.pop(rank, None)
        if lines is not None:
            del self._ranks[bisect_left(self._ranks, rank)]
            self._passed_over += [(rank, name, lines[name]) for name in lines]

    def resume(self) -> None:
        """Let those who were passed over be first again: their turn was not used."""
        while self._passed_over:
            rank, name, line = self._passed_over.pop()
            if rank not in self._lines:
                self._lines[rank] = RankLines()
                insort(self._ranks, rank)
            self._lines[rank].added += 1
            self._lines[rank][name] = line
            self._lines[rank].move_to_end(name, last=False)

    def find_replacing(self) -> Rank | None:
        """Find the highest rank of those that replace lost pods; None: nobody does."""
        return next((rank for rank in reversed(self._ranks) if rank[1]), None)

    def has_below(self, rank: Rank) -> bool:
        """True if somebody of a lower rank is lined up."""
        return bool(self._ranks) and self._ranks[0] < rank

    def _drop_empty(self, ticket: Ticket) -> None:
        rank = ticket.rank
        lines = self._lines[rank]
        if not lines[ticket.line]:
            del lines[ticket.line]
        if not lines:
            del self._lines[rank]
            del self._ranks[bisect_left(self._ranks, rank)]
