"""Gangs come and go in virtual time, over the code that decides beside a cluster.

The same Snapshot, queue, reservations and engines as the service's; only the clock is
made, and nothing takes any time but the gangs. The same gangs and policy make the same
course. Pure, but for the sandbox in which selectors are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from contracts.ids import ClusterName, GangKey, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import DecisionMessage, ReleaseOutcome, SubmitGang
from solver.allocate import allocate
from solver.problem.assemble import (
    MissingVerdict,
    assemble,
    find_missing_verdicts,
    resolve_gangs,
)
from solver.problem.problem import Parameters
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import BatchLimits
from solver.selectors.table import SelectorTable, Verdict
from solver.service.messages import make_decision, make_release
from solver.snapshot.snapshot import Snapshot, apply
from solver.timeline.asking import Asker, answer_all
from solver.timeline.keeper import Look, list_candidates
from solver.timeline.patience import NEVER
from solver.timeline.reservations import Reservations

CLUSTER = ClusterName("simulated")
Evaluate = Callable[[Sequence[MissingVerdict]], Sequence[Verdict]]


class Arrival(Struct, frozen=True, kw_only=True):
    """A gang of a trace."""

    submitted: SubmitGang
    at_s: int
    runs_s: int
    """How long it really runs; its duration says at most how long."""


class Policy(Struct, frozen=True, kw_only=True):
    """What is tried out."""

    name: str = "reservations"
    patience_s: int = 1800
    """How long a gang is tried in vain before devices are kept for it; `NEVER`: for
    none are."""


class Stay(Struct, kw_only=True):
    """What became of one gang."""

    arrival: Arrival
    started_s: int | None = None
    ended_s: int | None = None
    promised_s: int | None = None
    """The first start that it was promised."""
    moved_later: int = 0
    """How often a promise to it was moved later."""


class Course:
    """One simulated course of events."""

    def __init__(
        self,
        snapshot: Snapshot,
        arrivals: Sequence[Arrival],
        policy: Policy,
        evaluate: Evaluate,
    ) -> None:
        self.stays = {a.submitted.key: Stay(arrival=a) for a in arrivals}
        self.now_s = 0
        self._snapshot = snapshot
        self._policy = policy
        self._evaluate = evaluate
        self._parameters = Parameters(version="simulated")
        self._table = SelectorTable()
        self._queue = GangQueue()
        self._reservations = Reservations()
        self._sequence = 0
        self._events: list[tuple[int, int, GangKey | None]] = []
        """What happens next, and when: a gang comes or, once it started, ends; None: a
        reservation may be due."""
        for arrival in arrivals:
            self._schedule(arrival.at_s, arrival.submitted.key)

    def run(self) -> Iterator[int]:
        """Let everything happen; yields the time after each step of it."""
        while self._events:
            self.now_s = self._events[0][0]
            while self._events and self._events[0][0] == self.now_s:
                gang = heappop(self._events)[2]
                if gang is not None:
                    self._happen(self.stays[gang])
            self._decide_all()
            yield self.now_s

    def _schedule(self, at_s: int, gang: GangKey | None) -> None:
        self._sequence += 1
        heappush(self._events, (at_s, self._sequence, gang))

    def _happen(self, stay: Stay) -> None:
        if stay.started_s is None:
            self._believe(stay.arrival.submitted)
            if self._policy.patience_s != NEVER:
                self._schedule(self.now_s + self._policy.patience_s, None)
            return
        stay.ended_s = self.now_s
        record = self._snapshot.gangs.get(stay.arrival.submitted.key)
        if record is not None:
            outcome = ReleaseOutcome.COMPLETED
            self._believe(make_release(record, outcome, cluster=CLUSTER, epoch=1))

    def _believe(self, message: SubmitGang | DecisionMessage) -> None:
        self._sequence += 1
        self._snapshot = apply(
            self._snapshot, message, sequence=self._sequence, time_s=self.now_s
        )
        record = self._snapshot.gangs.get(message.key)
        if record is not None:
            self._queue.follow(record)

    # --- decisions -------------------------------------------------------------------

    def _decide_all(self) -> None:
        """Decide until nobody's turn is left, and nobody is to have a reservation."""
        while True:
            self._queue.wake(self._snapshot, self._snapshot.grown)
            self._snapshot = self._snapshot.without_grown()
            batch = self._queue.choose(
                self._snapshot,
                BatchLimits(),
                admits=self._reservations.admission(self.now_s).takes,
            )
            if batch:
                self._decide(batch)
            elif not self._look():
                return

    def _decide(self, batch: Sequence[GangRecord]) -> None:
        clear = self._reservations.clear(self._snapshot, batch, self.now_s)
        gangs = resolve_gangs(clear, batch, self._parameters.features)
        while missing := find_missing_verdicts(clear, gangs, self._table):
            verdicts = self._evaluate(missing)
            self._table = self._table.with_verdicts(missing, verdicts)
        decision = allocate(assemble(clear, gangs, self._table, self._parameters))
        for record, answer in zip(batch, decision.gangs, strict=True):
            message = make_decision(
                answer, record, cluster=CLUSTER, solve=SolveID(""), epoch=1
            )
            if message is not None:
                self._believe(message)
            if answer.members:
                self._start(self.stays[record.key])
            else:
                self._reservations.explain(record, self.now_s)

    def _start(self, stay: Stay) -> None:
        stay.started_s = self.now_s
        self._schedule(self.now_s + stay.arrival.runs_s, stay.arrival.submitted.key)

    def _look(self) -> bool:
        """Look at what is kept; True: somebody is to be tried again."""
        look = Look(
            snapshot=self._snapshot,
            now_s=self.now_s,
            asker_of=lambda _: Asker(table=self._table, parameters=self._parameters),
            patience_s=self._policy.patience_s,
        )
        if not (self._reservations.book.kept or list_candidates(look, ())):
            return False
        before = {each.key for each in self._reservations.book.kept}
        again = answer_all(self._reservations.look(look), allocate)
        for each in self._reservations.book.kept:
            stay = self.stays[each.key]
            if each.key not in before and stay.promised_s is None:
                stay.promised_s = each.start_s
        for was, _ in self._reservations.book.late:
            self.stays[was.key].moved_later += 1
        self._queue.retry(again)
        return bool(again)
