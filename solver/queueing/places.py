"""Which waiting gangs of a namespace may be tried: the most urgent, as its quota says.

Without a quota all may. Knows neither turns nor batches.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from msgspec import Struct

from contracts.ids import GangKey, Namespace
from solver.queueing.turns import Ticket
from solver.quotas import Quotas

Urgency = tuple[int, bool, int, GangKey]
"""Minus the priority, False for those that replace lost pods, age, whose they are."""


class Moved(Struct, frozen=True):
    """Who may be tried now, and who may not any more."""

    entered: tuple[Ticket, ...] = ()
    displaced: tuple[Ticket, ...] = ()


class Places:
    """The waiting gangs of namespaces by urgency; the first of each have places."""

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._lines: dict[Namespace, list[Urgency]] = {}
        """Of namespaces with a quota; the most urgent first."""
        self._tickets: dict[GangKey, Ticket] = {}
        self._beyond: dict[GangKey, None] = {}

    def limit_of(self, namespace: Namespace) -> int | None:
        """Return how many gangs of a namespace may be tried; None: all."""
        return self._quotas.of(namespace)

    def count(self, namespace: Namespace) -> int:
        """Count the waiting gangs of a namespace with a quota."""
        return len(self._lines.get(namespace, ()))

    def is_beyond(self, gang: GangKey) -> bool:
        """True if a gang waits without a place."""
        return gang in self._beyond

    def get_beyond(self, gang: GangKey) -> Ticket | None:
        """Look up a gang without a place; None: it has one, or does not wait."""
        return self._tickets[gang] if gang in self._beyond else None

    def put(self, ticket: Ticket) -> Moved:
        """Let a gang wait: it has a place if it is urgent enough, maybe another's."""
        namespace = ticket.gang.namespace
        limit = self.limit_of(namespace)
        if limit is None:
            return Moved(entered=(ticket,))
        line = self._lines.setdefault(namespace, [])
        insort(line, _urgency_of(ticket))
        self._tickets[ticket.gang] = ticket
        if bisect_left(line, _urgency_of(ticket)) >= limit:
            self._beyond[ticket.gang] = None
            return Moved()
        if len(line) <= limit:
            return Moved(entered=(ticket,))
        *_, last = line[limit]
        self._beyond[last] = None
        return Moved(entered=(ticket,), displaced=(self._tickets[last],))

    def remove(self, gang: GangKey) -> Moved:
        """Let a gang wait no more; its place is the next one's."""
        ticket = self._tickets.pop(gang, None)
        if ticket is None:
            return Moved()
        line = self._lines[gang.namespace]
        del line[bisect_left(line, _urgency_of(ticket))]
        if not line:
            del self._lines[gang.namespace]
        if gang in self._beyond:
            del self._beyond[gang]
            return Moved()
        limit = self.limit_of(gang.namespace) or 0
        if len(line) < limit:
            return Moved()
        *_, first = line[limit - 1]
        del self._beyond[first]
        return Moved(entered=(self._tickets[first],))


def _urgency_of(ticket: Ticket) -> Urgency:
    return (-ticket.priority, not ticket.replaces, ticket.age, ticket.gang)
