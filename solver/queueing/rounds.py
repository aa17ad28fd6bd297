"""Gangs that take turns in rounds: each is tried once before any is tried again.

Up to half of a batch is for those whose turn was in this round already and who may
profit again, so that what is freed is offered to the most urgent first. The rest comes
next: a large backlog never keeps the bus waiting for one answer.

Pods that running gangs have lost are decided without others of their priority, or below
it, beside them: those wait for the next batch. After a few such batches the next one is
for those who wait, however often pods fail. Knows no snapshot.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from contracts.ids import GangKey
from contracts.lifecycle import GangRecord
from solver.queueing.turns import Pick, Rank, Ticket, Turns, pick_first
from solver.snapshot.maps import FrozenMap

MOST_IN_A_ROW = 4
"""So many batches replace lost pods before those who wait have one."""


class BatchLimits(Struct, frozen=True, kw_only=True):
    """How much one solve takes."""

    gangs: int = 256
    pods: int = 2048
    """A single gang may have more."""

    def part(self, times: int) -> BatchLimits:
        """Return limits that are so many times smaller."""
        return BatchLimits(gangs=self.gangs // times, pods=self.pods // times)


Admits = Callable[[GangRecord], bool]
"""True if a gang may be tried in one batch with those that were admitted before."""


class Batch:
    """The gangs that are chosen for one solve."""

    def __init__(
        self,
        records: FrozenMap[GangKey, GangRecord],
        admits: Admits,
        pick: Pick = pick_first,
    ) -> None:
        """`records`: the gangs that may be chosen at all."""
        self._records = records
        self._pick = pick
        self._admits = admits
        self._pods = 0
        self.tickets: list[Ticket] = []
        self.records: list[GangRecord] = []

    def fill(
        self,
        turns: Turns,
        limits: BatchLimits,
        *,
        at_least: int = 0,
        lowest: Rank | None = None,
    ) -> None:
        """Take those whose turn it is, within the limits of the whole batch.

        Nobody is taken whose rank is below the `lowest`.
        """
        while (ticket := turns.peek(self._pick)) is not None:
            if lowest is not None and ticket.rank < lowest:
                return
            is_full = (
                len(self.tickets) >= limits.gangs
                or self._pods + ticket.pods > limits.pods
            )
            if is_full and len(self.tickets) >= at_least:
                return
            record = self._records.get(ticket.gang)
            if record is not None and not self._admits(record):
                turns.pass_over(ticket)
                continue
            turns.take(ticket)
            if record is not None:
                self._pods += ticket.pods
                self.tickets.append(ticket)
                self.records.append(record)


class Rounds:
    """Gangs that are lined up; each step costs the logarithm of what waits."""

    def __init__(self) -> None:
        self._due = Turns()
        """To be tried in this round."""
        self._again = Turns()
        """Tried in this round, and something grew since that may concern them."""
        self._in_a_row = 0
        """So many batches replaced lost pods while others waited."""

    def __len__(self) -> int:
        return len(self._due) + len(self._again)

    def get(self, gang: GangKey) -> Ticket | None:
        """Look a gang up; None: it is not here."""
        return self._due.get(gang) or self._again.get(gang)

    def was_tried(self, gang: GangKey) -> bool:
        """True if a gang that is lined up was tried in this round."""
        return self._again.get(gang) is not None

    def put(self, ticket: Ticket) -> None:
        """Line a gang up for this round."""
        self._due.put(ticket)

    def put_again(self, ticket: Ticket) -> None:
        """Line a gang up that was tried in this round."""
        self._again.put(ticket)

    def remove(self, gang: GangKey) -> Ticket | None:
        """Take a gang out; None: it is not here."""
        return self._due.remove(gang) or self._again.remove(gang)

    def fill(self, batch: Batch, limits: BatchLimits) -> None:
        """Take those whose turn it is; see `Batch.fill`."""
        if not len(self._due):
            self._due, self._again = self._again, self._due
        both, lowest = (self._due, self._again), self._find_replacing()
        if lowest is None:
            self._in_a_row = 0
            self._take(batch, limits)
            return
        if self._in_a_row < MOST_IN_A_ROW:
            self._take(batch, limits, lowest)
            if batch.tickets:
                waits = any(turns.has_below(lowest) for turns in both)
                self._in_a_row = self._in_a_row + 1 if waits else 0
                return
        self._in_a_row = 0
        for turns in both:
            turns.pass_over_rank(lowest)
        self._take(batch, limits)
        # Those that were passed over have what room is left.
        for turns in both:
            batch.fill(turns, limits, at_least=1)
            turns.resume()

    def _take(
        self, batch: Batch, limits: BatchLimits, lowest: Rank | None = None
    ) -> None:
        half = limits.part(2)
        batch.fill(self._again, half, at_least=min(1, half.gangs), lowest=lowest)
        one_more = len(batch.tickets) + 1
        batch.fill(self._due, limits, at_least=one_more, lowest=lowest)
        batch.fill(self._again, limits, lowest=lowest)
        for turns in (self._due, self._again):
            turns.resume()

    def _find_replacing(self) -> Rank | None:
        found = (self._due.find_replacing(), self._again.find_replacing())
        return max((rank for rank in found if rank is not None), default=None)
