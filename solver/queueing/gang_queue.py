"""Which gangs are decided together, and when a gang is tried again.

A gang that was tried in vain is set aside until something grows that may concern it.
Waiting gangs are tried in rounds (`rounds.py`), in the order of their turns; so even
while something grows all the time nobody is passed over. Of a priority, pods that
running gangs have lost have batches of their own first. Gangs that are in and may
grow have rounds of their own, and batches of their own when nobody else is lined up: no
pod that a gang can do without comes before a gang.

The order follows from the calls alone. Knows no devices, and no time but what it is
told.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from msgspec import Struct

from contracts.features import Features
from contracts.ids import GangKey
from contracts.kueue import STRICT
from contracts.lifecycle import GangRecord
from solver.problem.growth.grow import MOST_EXTRA, MOST_GROWN
from solver.problem.quota.queues import find_queue
from solver.queueing.hints import events_for, widen_events
from solver.queueing.places import Moved, Places
from solver.queueing.queue_order import QueueOrder
from solver.queueing.rounds import Admits, Batch, BatchLimits, Rounds
from solver.queueing.strict import QueueLines
from solver.queueing.turns import Pick, Rank, Ticket, pick_first
from solver.quotas import NO_QUOTAS, Quotas
from solver.snapshot.events import ClusterEvent
from solver.snapshot.queues import QueueObjects
from solver.snapshot.snapshot import Snapshot


class SetAside(Struct, frozen=True, kw_only=True):
    """A gang that was tried, and what may turn the no into a yes."""

    ticket: Ticket
    events: frozenset[ClusterEvent]


GROWING_PART = 4
"""A batch of gangs that grow is so many times smaller: who comes meanwhile waits."""


def _limit_growth(limits: BatchLimits) -> BatchLimits:
    """Take no more gangs that grow than are tried in one batch."""
    part = limits.part(GROWING_PART)
    return BatchLimits(
        gangs=min(part.gangs, MOST_GROWN), pods=min(part.pods, MOST_EXTRA)
    )


def _admit_all(_: GangRecord) -> bool:
    return True


class GangQueue:
    """Gangs that wait or may grow, in the order in which they are tried."""

    def __init__(self, gang_quotas: Quotas = NO_QUOTAS) -> None:
        self._queues = QueueObjects()
        self._lines = QueueLines()
        self.places = Places(gang_quotas)
        """Who may be tried at all."""
        self.displaced: dict[GangKey, None] = {}
        """Who got no place, or lost it, until somebody takes note."""
        self._waiting = Rounds()
        self._growing = Rounds()
        """Gangs that are in with fewer pods than they ask for."""
        self._aside: dict[GangKey, SetAside] = {}
        self._by_event: dict[ClusterEvent, dict[GangKey, None]] = {}
        """Who is set aside, by what may concern them."""
        self._resting: dict[GangKey, tuple[float, Ticket]] = {}
        self._ends: list[tuple[float, GangKey]] = []
        """When a rest ends: a heap."""

    def __len__(self) -> int:
        lined_up = len(self._waiting) + len(self._growing)
        return lined_up + len(self._aside) + len(self._resting)

    # --- who waits -------------------------------------------------------------------

    def follow(self, record: GangRecord) -> None:
        """Take note of what became of a gang: whether it waits, or may grow.

        One that has more pods since it was tried may have been asked for a part of the
        rest alone; so it is tried again, until that brings it none.
        """
        gang = record.key
        ticket = make_ticket(record, self._queues)
        if record.is_tried and self._knows(ticket):
            return
        tried = self._aside.get(gang)
        self._forget(gang)
        self._lines.remove(gang)
        self._move(self.places.remove(gang))
        self.displaced.pop(gang, None)
        if record.wants_decision:
            self._lines.put(ticket)
            self._move(self.places.put(ticket))
            if self.places.is_beyond(gang):
                self.displaced[gang] = None
        elif record.wants_growth:
            self._follow_growth(ticket, tried)

    def note_age(self, record: GangRecord) -> None:
        """Let a gang have its turns by its age; one that was tried is tried again."""
        gang, resting = record.key, self._resting.get(record.key)
        was_tried = gang in self._aside or self._waiting.was_tried(gang)
        self.follow(record)
        if resting is not None:
            self.rest(gang, resting[0])
        elif was_tried and (ticket := self._waiting.remove(gang)) is not None:
            self._waiting.put_again(ticket)

    def _follow_growth(self, ticket: Ticket, tried: SetAside | None) -> None:
        if tried is None:
            self._growing.put(ticket)
        elif ticket.pods < tried.ticket.pods:
            self._growing.put_again(ticket)
        else:
            self._set_aside(ticket, tried.events)

    def _move(self, moved: Moved) -> None:
        for ticket in moved.displaced:
            self._forget(ticket.gang)
            self.displaced[ticket.gang] = None
        for ticket in moved.entered:
            self.displaced.pop(ticket.gang, None)
            self._waiting.put(ticket)

    def _rounds_of(self, ticket: Ticket) -> Rounds:
        return self._growing if ticket.grows else self._waiting

    @property
    def lined_up(self) -> int:
        """How many gangs that are not in wait for their turn."""
        return len(self._waiting)

    def is_lined_up(self, gang: GangKey) -> bool:
        """True if a gang waits for its turn, rather than for something to grow."""
        return self._waiting.get(gang) is not None

    def rest(self, gang: GangKey, until: float) -> None:
        """Leave a gang out until then, if it is here."""
        ticket = self._forget(gang)
        if ticket is not None:
            self._resting[gang] = (until, ticket)
            heappush(self._ends, (until, gang))

    def retry(self, gangs: Iterable[GangKey]) -> None:
        """Let gangs be tried in this round that were set aside: they were not tried."""
        for gang in gangs:
            ticket = self._forget(gang) if gang in self._aside else None
            if ticket is not None:
                self._rounds_of(ticket).put(ticket)

    def wake(self, snapshot: Snapshot, grown: Iterable[ClusterEvent]) -> None:
        """Let those be tried again whom it may concern that something grew.

        Costs what classes there are, and whom it concerns: each was tried since it was
        last woken.
        """
        for event in sorted(widen_events(snapshot, grown)):
            for gang in list(self._by_event.get(event, ())):
                ticket = self._forget(gang)
                if ticket is not None:
                    self._rounds_of(ticket).put_again(ticket)

    # --- whose turn it is ------------------------------------------------------------

    def choose(
        self,
        snapshot: Snapshot,
        limits: BatchLimits,
        *,
        now: float = 0.0,
        admits: Admits = _admit_all,
        pick: Pick = pick_first,
    ) -> tuple[GangRecord, ...]:
        """Choose the gangs of the next solve, most urgent first; empty: nothing to do.

        They are set aside at once, so that what grows meanwhile counts for them. `now`
        is the time by which rests end. A line whose first gang is not admitted beside
        those chosen before waits for the next batch; alone everybody is admitted.
        `pick` chooses among queues.
        """
        self.follow_queues(snapshot)
        self._end_rests(now)

        def is_next(record: GangRecord) -> bool:
            return self._is_in_order(snapshot, record.key) and admits(record)

        batch = Batch(snapshot.waiting, is_next, pick)
        self._waiting.fill(batch, limits)
        if not batch.tickets and not snapshot.release:
            # Beside Kubernetes the publisher asks for more pods once a gang runs.
            batch = Batch(snapshot.growing, admits, pick)
            self._growing.fill(batch, _limit_growth(limits))
        for ticket, record in zip(batch.tickets, batch.records, strict=True):
            events = events_for(snapshot, record)
            if ticket.queue:
                events |= {snapshot.queues.quota_event(ticket.queue)}
            self._set_aside(ticket, events)
        if pick is pick_first:
            return tuple(sorted(batch.records, key=urgency_of))
        # Of a rank, as the queues had their turns: so they take what is left of quotas.
        return tuple(sorted(batch.records, key=lambda record: urgency_of(record)[:2]))

    def follow_queues(self, snapshot: Snapshot) -> None:
        """Line everybody up anew whose queue is another one now."""
        if snapshot.queues is not self._queues:
            self._queues = snapshot.queues
            for records in (snapshot.waiting, snapshot.growing):
                for record in sorted(records.values(), key=urgency_of):
                    self.follow(record)

    def _is_in_order(self, snapshot: Snapshot, gang: GangKey) -> bool:
        """False for whom others of its queue wait that are to be tried before it."""
        queue = snapshot.queues.cluster_queues.get(self._lines.queue_of(gang))
        is_strict = queue is not None and queue.spec.queueing_strategy == STRICT
        return not is_strict or self._lines.is_first(gang)

    def _set_aside(self, ticket: Ticket, events: frozenset[ClusterEvent]) -> None:
        self._aside[ticket.gang] = SetAside(ticket=ticket, events=events)
        for event in events:
            self._by_event.setdefault(event, {})[ticket.gang] = None

    def _end_rests(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            end, gang = heappop(self._ends)
            if gang in self._resting and self._resting[gang][0] == end:
                ticket = self._resting.pop(gang)[1]
                self._rounds_of(ticket).put(ticket)

    # --- where a gang stands ---------------------------------------------------------

    def _knows(self, ticket: Ticket) -> bool:
        gang = ticket.gang
        beyond = self.places.get_beyond(gang)
        if beyond is not None:
            return beyond == ticket
        aside, resting = self._aside.get(gang), self._resting.get(gang)
        if aside is not None:
            return aside.ticket == ticket
        if resting is not None:
            return resting[1] == ticket
        return self._rounds_of(ticket).get(gang) == ticket

    def _forget(self, gang: GangKey) -> Ticket | None:
        """Take a gang out, wherever it stands; None: it is not here."""
        ticket = self._waiting.remove(gang) or self._growing.remove(gang)
        if gang in self._resting:
            ticket = self._resting.pop(gang)[1]
        aside = self._aside.pop(gang, None)
        if aside is None:
            return ticket
        for event in aside.events:
            concerned = self._by_event[event]
            del concerned[gang]
            if not concerned:
                del self._by_event[event]
        return aside.ticket


def choose_batch(snapshot: Snapshot, limits: BatchLimits) -> tuple[GangRecord, ...]:
    """Choose the first batch of all that wait, also those that no quota lets in."""
    queue = GangQueue()
    queue.follow_queues(snapshot)
    for record in sorted(snapshot.waiting.values(), key=urgency_of):
        queue.follow(record)
    if not len(snapshot.queues.cluster_queues):
        return queue.choose(snapshot, limits)
    order = QueueOrder(snapshot, Features())

    def take(record: GangRecord) -> bool:
        order.takes(record)
        return True

    return queue.choose(snapshot, limits, admits=take, pick=order.pick)


def make_ticket(record: GangRecord, queues: QueueObjects) -> Ticket:
    """Sum up what decides about a gang's turn."""
    return Ticket(
        gang=record.key,
        priority=priority_of(record),
        age=record.submission_sequence,
        pods=count_pods(record),
        grows=record.wants_growth,
        replaces=_replaces(record),
        queue=_find_queue_name(record, queues),
    )


def urgency_of(record: GangRecord) -> tuple[int, bool, int, GangKey]:
    """Order the gangs of a batch: by priority, those that replace lost pods, age."""
    priority, replaces = rank_of(record)
    return (-priority, not replaces, record.submission_sequence, record.key)


def _find_queue_name(record: GangRecord, queues: QueueObjects) -> str:
    if record.submission is None:
        return ""
    found = find_queue(queues, record.submission.gang)
    # Who is not let in is in nobody's way, and has turns with its namespace to be told.
    return "" if found is None or found.closed else found.name


def rank_of(record: GangRecord) -> Rank:
    """Return what counts before all else, as in its ticket: the greater comes first."""
    return (priority_of(record), _replaces(record))


def priority_of(record: GangRecord) -> int:
    """Return the priority by which a gang has its turn: its own, and by its age."""
    return own_priority_of(record) + record.aged


def own_priority_of(record: GangRecord) -> int:
    """Return the priority that a gang's author gave; 0 while that is not known."""
    return 0 if record.submission is None else record.submission.gang.spec.priority


def _replaces(record: GangRecord) -> bool:
    return record.submission is not None and record.submission.restores > 0


def count_pods(record: GangRecord) -> int:
    """Count the pods of a gang that have no place yet."""
    if record.submission is None:
        return 0
    if record.allocated is not None:
        return sum(record.allocated.growing.values())
    return sum(member.count for member in record.submission.gang.spec.members)
