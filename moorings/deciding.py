"""Decides whatever waits on a Snapshot, as the service does, until nothing is left.

The same queue, quotas, reservations and engines as the service's, without a bus: for
simulations and what-ifs. Pure, but for the sandbox in which selectors are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from contracts.ids import ClusterName, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import DecisionMessage, SubmitGang
from solver.allocate import allocate
from solver.decision import Decision, GangDecision
from solver.problem.assemble import (
    MissingVerdict,
    assemble,
    find_missing_verdicts,
    resolve_gangs,
)
from solver.problem.expected import PastDemand, list_last
from solver.problem.gangs import GangPart
from solver.problem.problem import Parameters, QuotaPart
from solver.problem.quota.asked import count_held
from solver.problem.quota.quotas import is_held_up_by_others, keep_quotas
from solver.problem.sharing import waits_for_another
from solver.queueing.gang_queue import GangQueue, urgency_of
from solver.queueing.queue_order import QueueOrder
from solver.queueing.rounds import Admits, BatchLimits
from solver.queueing.turns import Pick, pick_first
from solver.selectors.table import SelectorTable, Verdict
from solver.service.messages import make_decision
from solver.snapshot.snapshot import Snapshot, apply
from solver.timeline.asking import Asker, answer_all
from solver.timeline.book import is_before
from solver.timeline.keeper import Book, Outlook, list_candidates
from solver.timeline.reservations import OneWay, Reservations

Evaluate = Callable[[Sequence[MissingVerdict]], Sequence[Verdict]]


class Judged:
    """The verdicts of selectors: one table for all that is asked of one fleet.

    Pages remember for which devices verdicts are known, so of one fleet there is no
    second table.
    """

    def __init__(self, evaluate: Evaluate) -> None:
        self.table = SelectorTable()
        self._evaluate = evaluate

    def learn(self, snapshot: Snapshot, gangs: Sequence[GangPart]) -> None:
        """Evaluate the selectors of gangs."""
        while missing := find_missing_verdicts(snapshot, gangs, self.table):
            verdicts = self._evaluate(missing)
            self.table = self.table.with_verdicts(missing, verdicts)


class Deciding:
    """A cluster whose gangs are decided at times that its user sets."""

    def __init__(
        self,
        snapshot: Snapshot,
        parameters: Parameters,
        judged: Judged,
        *,
        cluster: ClusterName,
        patience_s: int,
        reservations: int = 1,
        now_s: int = 0,
    ) -> None:
        """Begin as a solver that just took over.

        `patience_s`: how long a gang is tried in vain before devices are kept for it;
        `NEVER`: for none are. `reservations`: for how many of a queue at a time.
        """
        self.snapshot = snapshot
        self.now_s = now_s
        self._cluster = cluster
        self._parameters = parameters
        self._judged = judged
        self._patience_s = patience_s
        self._most_reservations = reservations
        self._past: PastDemand | None = None
        """What was asked for lately; None: nobody has looked yet."""
        self._queue = GangQueue()
        self._queue.follow_queues(snapshot)
        self._reservations = Reservations()
        self._is_worse = False
        """True if somebody began who need not leave alone what is kept."""
        self._sequence = max(map(_last_sequence, snapshot.gangs.values()), default=0)
        for records in (snapshot.waiting, snapshot.growing):
            for record in sorted(records.values(), key=urgency_of):
                self._queue.follow(record)
        # What they were promised is looked at before they are tried.
        promised = snapshot.promised.values()
        gangs = resolve_gangs(snapshot, promised, parameters.features)
        judged.learn(snapshot, gangs)

    # --- what its user is told -------------------------------------------------------

    def _note_decision(self, decision: Decision) -> None:
        """A batch was decided."""

    def _note_start(self, record: GangRecord) -> None:
        """A gang got a place now."""

    def _note_book(self, before: Book, after: Book) -> None:
        """What is kept was looked at."""

    # --- decisions -------------------------------------------------------------------

    def believe(self, message: SubmitGang | DecisionMessage) -> None:
        """Let the Snapshot and the queue follow a message, which is said now."""
        self._sequence += 1
        self.snapshot = apply(
            self.snapshot, message, sequence=self._sequence, time_s=self.now_s
        )
        record = self.snapshot.gangs.get(message.key)
        if record is not None:
            self._queue.follow(record)

    def decide_all(self) -> None:
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
        admits: Admits = admission.takes
        pick: Pick = pick_first
        if len(self.snapshot.queues.cluster_queues):
            order = QueueOrder(self.snapshot, self._parameters.features)
            admits, pick = _both(admission.takes, order.takes), order.pick
        batch = self._queue.choose(
            self.snapshot, BatchLimits(), admits=admits, pick=pick
        )
        if batch:
            self._decide(batch)
        return bool(batch)

    def _decide(self, batch: Sequence[GangRecord]) -> None:
        clear = self._reservations.clear(self.snapshot, batch, self.now_s)
        gangs = resolve_gangs(clear, batch, self._parameters.features)
        within = keep_quotas(clear, gangs)
        gangs = within.gangs
        self._judged.learn(clear, gangs)
        self._follow_past().note(gangs)
        answers = self._answer(clear, gangs, within.quotas)
        for record, gang, decided in zip(batch, gangs, answers, strict=True):
            answer = self._explain(record, decided)
            message = make_decision(
                answer,
                record,
                cluster=self._cluster,
                solve=SolveID(""),
                epoch=1,
                quota=count_held(gang, answer.members),
            )
            if message is not None:
                self.believe(message)
            if answer.members:
                self._is_worse |= self._outranks(record)
                self._note_start(record)
            elif is_held_up_by_others(answer.reasons) or waits_for_another(
                answer.reasons
            ):
                self._queue.retry([record.key])

    def _answer(
        self,
        clear: Snapshot,
        gangs: tuple[GangPart, ...],
        quotas: tuple[QuotaPart, ...],
    ) -> Sequence[GangDecision]:
        """Decide a batch on a cluster."""
        table = self._judged.table
        expected = self._follow_past().expect(gangs, clear.inventory.pages, table)
        problem = assemble(
            clear, gangs, table, self._parameters, expected, quotas=quotas
        )
        decision = allocate(problem)
        self._note_decision(decision)
        return decision.gangs

    def _follow_past(self) -> PastDemand:
        """Return what was asked for; at first, by the gangs that are known."""
        if self._past is None:
            self._past = PastDemand()
            last = list_last(self.snapshot.gangs.values())
            features = self._parameters.features
            self._past.note(resolve_gangs(self.snapshot, last, features))
        return self._past

    def _explain(self, record: GangRecord, answer: GangDecision) -> GangDecision:
        """Add to why a gang waits what is kept for others, if it waits."""
        if answer.members:
            return answer
        more = self._reservations.explain(record, self.now_s)
        if answer.rejected or answer.failed:
            return answer
        return structs.replace(answer, reasons=(*answer.reasons, *more))

    def _outranks(self, record: GangRecord) -> bool:
        kept = self._reservations.book.kept
        return any(
            each.key != record.key and not is_before(each, record) for each in kept
        )

    def _look(self) -> bool:
        """Look at what is kept; True: somebody is to be tried again."""
        if not self.snapshot.waiting:
            return False
        asker = Asker(table=self._judged.table, parameters=self._parameters)
        look = Outlook(
            snapshot=self.snapshot,
            now_s=self.now_s,
            asker_of=lambda _: asker,
            patience_s=self._patience_s,
            reservations=self._most_reservations,
            is_worse=self._is_worse,
        )
        self._is_worse = False
        before = self._reservations.book
        promised = self.snapshot.promised
        if not (before.kept or promised or list_candidates(look, ())):
            return False
        again = answer_all(self._reservations.look(look), allocate)
        self._note_book(before, self._reservations.book)
        self._queue.retry(again)
        return bool(again)


def _both(one: Admits, other: Admits) -> Admits:
    return lambda record: one(record) and other(record)


def _last_sequence(record: GangRecord) -> int:
    return max(
        record.submission_sequence, record.decision_sequence, record.command_sequence
    )
