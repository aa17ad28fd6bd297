"""Who is before whom: the lines in which gangs wait, as the solver has them.

Gangs of a ClusterQueue are one line, by rank and age. Those without a queue wait by
rank, then their namespaces take turns, each with its oldest gang. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest
from typing import Any

from msgspec import structs

from contracts.ids import GangKey, Namespace
from contracts.lifecycle import GangRecord
from solver.queueing.aging import count_steps, find_agings
from solver.queueing.gang_queue import make_ticket
from solver.queueing.strict import QueueLines
from solver.queueing.turns import Rank, Ticket
from solver.snapshot.queues import QueueObjects

MOST_BEFORE = 20
"""Gangs that are named."""
Row = dict[str, Any]


class WaitingLines:
    """All gangs that wait for a decision."""

    def __init__(
        self,
        records: Iterable[GangRecord],
        queues: QueueObjects | None = None,
        now_s: float = 0.0,
    ) -> None:
        """`now_s`, since the epoch: by which gangs have gained priority by age."""
        self._names: dict[GangKey, str] = {}
        self._tickets: dict[GangKey, Ticket] = {}
        self._of_queues = QueueLines()
        self._without: dict[Rank, dict[Namespace, list[Ticket]]] = {}
        """Gangs without a queue, the oldest of a namespace first."""
        objects = QueueObjects() if queues is None else queues
        agings = find_agings(objects)
        self._aged: dict[GangKey, int] = {}
        for record in sorted(records, key=lambda each: each.submission_sequence):
            if record.wants_decision:
                steps = count_steps(agings, objects, record, now_s)
                aged = structs.replace(record, aged=steps)
                self._aged[record.key] = steps
                self._put(aged, make_ticket(aged, objects))

    def _put(self, record: GangRecord, ticket: Ticket) -> None:
        self._names[record.key] = f"{record.namespace}/{record.name}"
        self._tickets[record.key] = ticket
        self._of_queues.put(ticket)
        if not ticket.queue:
            of_rank = self._without.setdefault(ticket.rank, {})
            of_rank.setdefault(record.namespace, []).append(ticket)

    def view(self, gang: GangKey) -> Row | None:
        """Return a gang's place in line; None: it does not wait for a decision.

        Of a gang without a queue it is the place as if its namespace had its turn.
        Gangs that were tried in vain are tried again only when something changes that
        may help them.
        """
        ticket = self._tickets.get(gang)
        if ticket is None:
            return None
        view = self._view_in_queue(ticket) if ticket.queue else self._view(ticket)
        return view | {"byAge": self._aged[gang]}

    def list_before(self, gang: GangKey) -> list[str]:
        """Name the first gangs that are before one whoever has the turn."""
        ticket = self._tickets.get(gang)
        if ticket is None:
            return []
        if ticket.queue:
            first = self._of_queues.list_before(gang, MOST_BEFORE)
            return [self._names[each] for each in first]
        before = (
            each
            for namespaces in self._without.values()
            for line in namespaces.values()
            for each in line
            if _is_before(each, ticket)
        )
        first_tickets = nsmallest(MOST_BEFORE, before, key=_urgency_of)
        return [self._names[each.gang] for each in first_tickets]

    def _view_in_queue(self, ticket: Ticket) -> Row:
        before = self._of_queues.count_before(ticket.gang)
        higher = self._of_queues.count_above(ticket)
        return {
            "place": 1 + before,
            "waiting": self._of_queues.count(ticket.queue),
            "queue": ticket.queue,
            "higherPriority": higher,
            "olderInQueue": before - higher,
            "olderInNamespace": 0,
            "namespacesInTurn": 0,
        }

    def _view(self, ticket: Ticket) -> Row:
        namespace, equal = ticket.gang.namespace, self._without[ticket.rank]
        higher = sum(
            len(line)
            for rank, namespaces in self._without.items()
            for line in namespaces.values()
            if rank > ticket.rank
        )
        older = sum(each.age < ticket.age for each in equal[namespace])
        others = sum(
            min(len(line), older) for name, line in equal.items() if name != namespace
        )
        return {
            "place": 1 + higher + older + others,
            "waiting": sum(
                len(line) for each in self._without.values() for line in each.values()
            ),
            "queue": "",
            "higherPriority": higher,
            "olderInQueue": 0,
            "olderInNamespace": older,
            "namespacesInTurn": len(equal),
        }


def _is_before(one: Ticket, other: Ticket) -> bool:
    """True if a gang without a queue comes first whichever namespace has its turn."""
    if one.rank != other.rank:
        return one.rank > other.rank
    return one.gang.namespace == other.gang.namespace and one.age < other.age


def _urgency_of(ticket: Ticket) -> tuple[int, bool, int, GangKey]:
    return (-ticket.priority, not ticket.replaces, ticket.age, ticket.gang)
