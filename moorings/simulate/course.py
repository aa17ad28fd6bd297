"""Jobs come and go in virtual time, over the code that decides beside a cluster.

The same Snapshot, queue, reservations and engines as the service's; only the clock is
made, and nothing takes any time but the jobs. The same jobs and policy make the same
course. Pure, but for the sandbox in which selectors are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from contracts.allocation import Reason, Rule
from contracts.ids import GangKey, GangUID, Namespace, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import DecisionMessage, ReleaseOutcome, SubmitGang
from moorings.simulate.cluster import SimulatedCluster
from moorings.simulate.job import CLUSTER, Job, submit_job
from solver.allocate import allocate
from solver.decision import GangDecision
from solver.problem.assemble import (
    MissingVerdict,
    assemble,
    find_missing_verdicts,
    resolve_gangs,
)
from solver.problem.expected import PastDemand
from solver.problem.free_devices import count_free
from solver.problem.gangs import GangPart
from solver.problem.problem import Parameters
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import BatchLimits
from solver.selectors.table import SelectorTable, Verdict
from solver.service.messages import make_decision, make_release
from solver.snapshot.snapshot import Snapshot, apply
from solver.timeline.asking import Asker, answer_all
from solver.timeline.book import is_before
from solver.timeline.keeper import Outlook, list_candidates
from solver.timeline.patience import NEVER
from solver.timeline.reservations import OneWay, Reservations

_TAKEN = Reason(rule=Rule.TAKEN, message="too few devices are free")
Evaluate = Callable[[Sequence[MissingVerdict]], Sequence[Verdict]]


class Policy(Struct, frozen=True, kw_only=True):
    """What is tried out."""

    name: str
    patience_s: int
    """How long a gang is tried in vain before devices are kept for it; `NEVER`: for
    none are."""
    reservations: int = 1
    """For how many gangs of each queue at a time."""


class Stay(Struct, kw_only=True):
    """What became of one job."""

    job: Job
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
        cluster: SimulatedCluster,
        jobs: Sequence[Job],
        policy: Policy,
        evaluate: Evaluate,
    ) -> None:
        self.stays = {key_of(job): Stay(job=job) for job in jobs}
        self.now_s = self.ended = 0
        self._cluster = cluster
        self.snapshot = cluster.snapshot
        self._policy = policy
        self._evaluate = evaluate
        self._parameters = Parameters(version="simulated")
        self._table = SelectorTable()
        self._past = PastDemand()
        self._queue = GangQueue()
        self._reservations = Reservations()
        self._is_worse = False
        """True if somebody began who need not leave alone what is kept."""
        self._sequence = 0
        self._events: list[tuple[int, int, GangKey | None]] = []
        """What happens next, and when: a gang comes or, once it started, ends; None: a
        reservation may be due."""
        for job in jobs:
            self._schedule(job.at_s, key_of(job))

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
            cluster = self._cluster
            self._believe(
                submit_job(stay.job, cluster.node_devices, cluster.device_class)
            )
            if self._policy.patience_s != NEVER:
                self._schedule(self.now_s + self._policy.patience_s, None)
            return
        stay.ended_s = self.now_s
        self.ended += 1
        record = self.snapshot.gangs.get(key_of(stay.job))
        if record is not None:
            outcome = ReleaseOutcome.COMPLETED
            self._believe(make_release(record, outcome, cluster=CLUSTER, epoch=1))

    def _believe(self, message: SubmitGang | DecisionMessage) -> None:
        self._sequence += 1
        self.snapshot = apply(
            self.snapshot, message, sequence=self._sequence, time_s=self.now_s
        )
        record = self.snapshot.gangs.get(message.key)
        if record is not None:
            self._queue.follow(record)

    # --- decisions -------------------------------------------------------------------

    def _decide_all(self) -> None:
        """Decide until nobody's turn is left, and nobody is to have a reservation.

        What is kept is looked at before others are tried: it may be earlier by now.
        """
        was_looked_at = False
        while True:
            self._queue.wake(self.snapshot, self.snapshot.grown)
            self.snapshot = self.snapshot.without_grown()
            own, *others = self._reservations.admissions(
                self._queue.is_lined_up, self.now_s
            )
            if others and self._try(own):
                continue
            if not was_looked_at:
                was_looked_at = True
                self._look()
                continue
            if self._try((others or [own])[0]):
                was_looked_at = False
            elif not self._look():
                return

    def _try(self, admission: OneWay) -> bool:
        """Decide a batch; False: it was nobody's turn."""
        batch = self._queue.choose(self.snapshot, BatchLimits(), admits=admission.takes)
        if batch:
            self._decide(batch)
        return bool(batch)

    def _decide(self, batch: Sequence[GangRecord]) -> None:
        clear = self._reservations.clear(self.snapshot, batch, self.now_s)
        gangs = resolve_gangs(clear, batch, self._parameters.features)
        while missing := find_missing_verdicts(clear, gangs, self._table):
            verdicts = self._evaluate(missing)
            self._table = self._table.with_verdicts(missing, verdicts)
        self._past.note(gangs)
        free = count_free(clear.inventory.pages)
        lacks = [not gang.refused and free.lacks(gang) for gang in gangs]
        tried = tuple(
            g for g, hopeless in zip(gangs, lacks, strict=True) if not hopeless
        )
        answers = iter(self._solve(clear, tried))
        for record, gang, hopeless in zip(batch, gangs, lacks, strict=True):
            answer = _refuse(gang) if hopeless else next(answers)
            message = make_decision(
                answer, record, cluster=CLUSTER, solve=SolveID(""), epoch=1
            )
            if message is not None:
                self._believe(message)
            if answer.members:
                self._is_worse |= self._outranks(record)
                self._start(self.stays[record.key])
            else:
                self._reservations.explain(record, self.now_s)

    def _solve(
        self, clear: Snapshot, gangs: tuple[GangPart, ...]
    ) -> tuple[GangDecision, ...]:
        """Decide gangs that may have a place; nothing is solved for none."""
        if not gangs:
            return ()
        expected = self._past.expect(gangs, clear.inventory.pages, self._table)
        problem = assemble(clear, gangs, self._table, self._parameters, expected)
        return allocate(problem).gangs

    def _outranks(self, record: GangRecord) -> bool:
        kept = self._reservations.book.kept
        return any(
            each.key != record.key and not is_before(each, record) for each in kept
        )

    def _start(self, stay: Stay) -> None:
        stay.started_s = self.now_s
        self._schedule(self.now_s + stay.job.runs_s, key_of(stay.job))

    def _look(self) -> bool:
        """Look at what is kept; True: somebody is to be tried again."""
        if not self.snapshot.waiting:
            return False
        look = Outlook(
            snapshot=self.snapshot,
            now_s=self.now_s,
            asker_of=lambda _: Asker(table=self._table, parameters=self._parameters),
            patience_s=self._policy.patience_s,
            reservations=self._policy.reservations,
            is_worse=self._is_worse,
        )
        self._is_worse = False
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


def _refuse(gang: GangPart) -> GangDecision:
    """Refuse a gang by counting: the reasons of a simulation are not read."""
    return GangDecision(
        uid=gang.uid, namespace=gang.namespace, name=gang.name, reasons=(_TAKEN,)
    )


def key_of(job: Job) -> GangKey:
    """Return the key of the gang that a job becomes."""
    return GangKey(namespace=Namespace(job.queue), uid=GangUID(job.name))
