"""Reservations beside the decisions: looked at now and then, recorded, and promised.

What the leader promises is in the last decision of the gang, so another leader goes on
from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic, time

from msgspec import Struct, structs

from contracts.allocation import Reason
from contracts.counts import listed
from contracts.ids import GangKey, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import ExpectedStart, GangAllocated, GangPending
from contracts.times import write_time
from runtime.log import get_logger
from solver.decision import DECISION, Decision
from solver.errors import VerdictMissingError, WorkerError
from solver.problem.problem import Problem
from solver.service import metrics
from solver.service.config import SolverConfig
from solver.service.decide import Decider
from solver.service.ledger import solve_id
from solver.snapshot.snapshot import Snapshot
from solver.timeline.asking import Asker, Asking, ask_next
from solver.timeline.keeper import Outlook
from solver.timeline.preempting import PreemptionPlan, list_void
from solver.timeline.reservations import (
    MOST_NAMED,
    OneWay,
    Reservations,
    name_gang,
)
from solver.timeline.reserve import Reservation

LOOK_S = 5.0
"""Between two looks."""
AGAIN_S = 0.5
"""From a look that changed something to the next."""
GUARD_S = 2.0
"""Of one question."""
WORK = 1.0
"""Deterministic time of one question."""
REST_S = 600.0
"""Nothing is asked for so long about a gang of which a question had no answer."""

log = get_logger(__name__)


class _BookLook(Struct, kw_only=True):
    """A look at all that is kept, and what it asks."""

    asking: Asking[list[GangKey]]
    before: tuple[Reservation, ...]
    problem: Problem | None = None
    """What waits for an answer."""


class Reserving:
    """The reservations of the solver that leads."""

    def __init__(
        self,
        config: SolverConfig,
        decider: Decider,
        snapshot: Callable[[], Snapshot],
        retry: Callable[[Iterable[GangKey]], None],
    ) -> None:
        """`retry` lets gangs be tried again that something was in the way of."""
        self._patience_s = config.read_patience()
        self._decider = decider
        self._snapshot = snapshot
        self._retry = retry
        self._reservations = Reservations()
        self._asked: dict[str, tuple[Problem, Decision, bytes]] = {}
        """What was asked in this look, by the Problem's hash."""
        self._solves: dict[str, SolveID] = {}
        """Recorded solves of what is kept, by the Problem's hash."""
        self._looks = 0
        """Since we lead."""
        self._is_settled = False
        """True if the last look that came to its end changed nothing."""
        self._expected: dict[GangKey, ExpectedStart] = {}
        """What is promised, as of the last look that changed nothing."""
        self._has_void = False
        """True if somebody was to go for a gang that does not wait any more."""
        self._resting: dict[GangKey, float] = {}
        """Until when nothing is asked about gangs."""

    def begin(self) -> None:
        """Begin to lead: what was promised is known from the gangs that were told."""
        self._reservations, self._looks, self._is_settled = Reservations(), 0, False

    # --- beside a batch --------------------------------------------------------------

    def admissions(self, is_lined_up: Callable[[GangKey], bool]) -> Iterator[OneWay]:
        """Begin a batch: yield who may be tried, until somebody is."""
        return self._reservations.admissions(is_lined_up, int(time()))

    def clear(self, batch: Sequence[GangRecord]) -> Snapshot:
        """Return the cluster as the gangs of a batch may use it."""
        return self._reservations.clear(self._snapshot(), batch, int(time()))

    def explain(self, record: GangRecord) -> tuple[Reason, ...]:
        """Say what is kept for others that a gang that waits must leave alone."""
        return self._reservations.explain(record, int(time()))

    # --- between batches -------------------------------------------------------------

    @property
    def is_known(self) -> bool:
        """True if what was promised before we led is kept again, or cannot be."""
        return self._looks > 0 or not self._snapshot().promised

    async def look(self) -> float:
        """Look at what is kept; gives the seconds until the next look.

        Beside the decisions: a question waits for no more than one batch, and a batch
        for one question. After a look that took long the next is as far away.

        Raises:
            BusUnavailableError: the bus is away; try again.
        """
        began_s, reservations = monotonic(), self._reservations
        look = await self._begin_look()
        try:
            await self._finish_look(look)
        except VerdictMissingError as error:
            log.warning("reservations.unsure", reason=str(error))
        except WorkerError as error:
            self._note_failure(look, error)
        finally:
            # Also a look that failed: nobody waits for the next one.
            self._asked.clear()
            if reservations is self._reservations:
                self._looks += 1
        # What was decided meanwhile knew nothing of it: it is promised once it holds.
        took_s = monotonic() - began_s
        return max(took_s, LOOK_S if self._is_settled else AGAIN_S)

    def _note_failure(self, look: _BookLook, error: WorkerError) -> None:
        for gang in () if look.problem is None else look.problem.gangs:
            self._resting[gang.key] = monotonic() + REST_S
            name = f"{gang.namespace}/{gang.name}"
            log.warning("reservation.unsure", gang=name, reason=str(error))

    async def _begin_look(self) -> _BookLook:
        told, now_s, at_s = self._snapshot(), monotonic(), int(time())
        snapshot = self._reservations.preempting.see(told)
        self._has_void = any(list_void(told, at_s))
        self._resting = {g: s for g, s in self._resting.items() if s > now_s}
        outlook = Outlook(
            snapshot=snapshot,
            now_s=at_s,
            asker_of=lambda record: self._make_asker(snapshot, record),
            patience_s=self._patience_s,
        )
        before = self._reservations.book.kept
        if not before and snapshot.promised:
            await self._decider.learn(snapshot, snapshot.promised.values())
        return _BookLook(asking=self._reservations.look(outlook), before=before)

    def _make_asker(self, snapshot: Snapshot, record: GangRecord) -> Asker | None:
        if record.key in self._resting:
            return None
        asker = self._decider.make_asker(snapshot, record)
        return None if asker is None else asker.limited(WORK)

    async def _finish_look(self, look: _BookLook) -> None:
        answer: Decision | None = None
        # States to come are made beside the loop: a large cluster has many.
        while isinstance(
            asked := await asyncio.to_thread(ask_next, look.asking, answer), Problem
        ):
            look.problem = asked
            data = await self._decider.ask(asked, GUARD_S)
            look.problem, answer = None, DECISION.decode(data)
            self._asked[asked.hash] = (asked, answer, data)
        self.follow_ages()
        book = self._reservations.book
        for was, why in book.late:
            metrics.MOVED_LATER.inc()
            log.warning("promise.moved", gang=name_gang(was.record), reason=why)
        for plan in self._reservations.preempting.plans:
            if plan.reservation not in look.before:
                _log_plan(plan)
        self._is_settled = book.kept == look.before
        if self._is_settled:
            self._expected = {each.key: self._make_expected(each) for each in book.kept}
        else:
            await self._record()
        self._retry(asked.value)

    def follow_ages(self) -> None:
        """Let those for whom something is kept have the priority of their age."""
        self._reservations.follow_ages(self._snapshot())

    async def _record(self) -> None:
        """Record what is kept, so that it can be replayed."""
        kept = {each.problem for each in self._reservations.book.kept}
        self._solves = {k: v for k, v in self._solves.items() if k in kept}
        for sha in sorted(kept - self._solves.keys()):
            if sha in self._asked:
                await self._decider.record(*self._asked[sha])
                self._solves[sha] = solve_id(self._asked[sha][0])

    # --- what is promised ------------------------------------------------------------

    def make_promises(self, snapshot: Snapshot, epoch: int) -> tuple[GangPending, ...]:
        """Make what is to be said of starts that are promised, or are not any more."""
        if not self._is_settled:
            return ()
        unknown, kept = self._reservations.book.unknown, self._expected
        told = {record.key for record in snapshot.promised.values()} - unknown
        records = (snapshot.waiting.get(gang) for gang in sorted(told | kept.keys()))
        return tuple(
            structs.replace(record.decision, epoch=epoch, expected=kept.get(record.key))
            for record in records
            if record is not None
            and isinstance(record.decision, GangPending)
            and record.expected != kept.get(record.key)
        )

    def make_preemptions(
        self, snapshot: Snapshot, epoch: int
    ) -> tuple[GangAllocated, ...]:
        """Make what is to be said to gangs that must go for others, or may stay.

        Together with what is promised to the others: who goes, goes for somebody.
        """
        # Who may stay is told at once, whatever else changes.
        plans = self._reservations.preempting.plans if self._is_settled else ()
        decisions = [each for plan in plans for each in plan.mark(snapshot)]
        if self._has_void:
            decisions += list_void(snapshot, int(time()))
        return tuple(structs.replace(each, epoch=epoch) for each in decisions)

    def _make_expected(self, kept: Reservation) -> ExpectedStart:
        gangs = self._snapshot().gangs
        holders = [record for key in kept.after if (record := gangs.get(key))]
        names = [name_gang(record) for record in holders]
        more = len(names) - MOST_NAMED
        shown = names[-MOST_NAMED:] + ([f"{more} more"] if more > 0 else [])
        because = f"{listed(shown)} must end first" if shown else "it starts next"
        if kept.moved:
            because += f"; later than it was once promised: {kept.moved}"
        return ExpectedStart(
            time="" if kept.start_s is None else write_time(kept.start_s),
            proven=kept.proven,
            because=because,
            since=write_time(kept.since_s),
            solve=self._solves.get(kept.problem, SolveID("")),
        )


def _log_plan(plan: PreemptionPlan) -> None:
    log.warning(
        "preemption.planned",
        gang=name_gang(plan.reservation.record),
        victims=[name_gang(each.record) for each in plan.victims],
        lost_device_s=plan.found.cost.lost_s,
        proven=plan.found.proven,
    )
