"""Reservations beside the decisions: looked at now and then, recorded, and promised.

What the leader promises is in the last decision of the gang, so another leader goes on
from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from time import monotonic, time
from typing import TypeVar

from msgspec import structs

from contracts.allocation import Reason
from contracts.counts import listed
from contracts.ids import GangKey, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import ExpectedStart, GangPending
from runtime.log import get_logger
from solver.decision import DECISION, Decision
from solver.errors import VerdictMissingError, WorkerError
from solver.problem.problem import Problem
from solver.service import metrics
from solver.service.config import SolverConfig
from solver.service.decide import Decider
from solver.service.ledger import solve_id
from solver.snapshot.snapshot import Snapshot
from solver.timeline.asking import Asking
from solver.timeline.keeper import Outlook
from solver.timeline.reservations import (
    MOST_NAMED,
    OneWay,
    Reservations,
    name_gang,
)
from solver.timeline.reserve import Reservation

LOOK_S = 5.0
"""Between two looks."""
GUARD_S = 20.0
"""Of one question."""
T = TypeVar("T")

log = get_logger(__name__)


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
        self._due_s = 0.0

    def begin(self) -> None:
        """Begin to lead: what was promised is known from the gangs that were told."""
        self._reservations, self._due_s = Reservations(), 0.0

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

    async def look(self) -> None:
        """Outlook at what is kept if that is due.

        Raises:
            BusUnavailableError: the bus is away; try again.
        """
        if monotonic() < self._due_s:
            return
        try:
            await self._look()
        except (VerdictMissingError, WorkerError) as error:
            log.warning("reservations.unsure", reason=str(error))
        finally:
            self._due_s = monotonic() + LOOK_S
            self._asked.clear()

    async def _look(self) -> None:
        snapshot = self._snapshot()
        look = Outlook(
            snapshot=snapshot,
            now_s=int(time()),
            asker_of=lambda record: self._decider.make_asker(snapshot, record),
            patience_s=self._patience_s,
        )
        before = self._reservations.book.kept
        if not before and snapshot.promised:
            await self._decider.learn(snapshot, snapshot.promised.values())
        again = await self._answer(self._reservations.look(look))
        for was, why in self._reservations.book.late:
            metrics.MOVED_LATER.inc()
            log.warning("promise.moved", gang=name_gang(was.record), reason=why)
        if self._reservations.book.kept != before:
            await self._record()
        self._retry(again)

    async def _answer(self, asking: Asking[T]) -> T:
        try:
            problem = next(asking)
            while True:
                data = await self._decider.ask(problem, GUARD_S)
                decision = DECISION.decode(data)
                self._asked[problem.hash] = (problem, decision, data)
                problem = asking.send(decision)
        except StopIteration as end:
            value: T = end.value
            return value

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
        if not self._due_s:
            return ()
        book = self._reservations.book
        kept = {each.key: self._make_expected(each) for each in book.kept}
        told = {record.key for record in snapshot.promised.values()} - book.unknown
        records = (snapshot.waiting.get(gang) for gang in sorted(told | kept.keys()))
        return tuple(
            structs.replace(record.decision, epoch=epoch, expected=kept.get(record.key))
            for record in records
            if record is not None
            and isinstance(record.decision, GangPending)
            and record.expected != kept.get(record.key)
        )

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
            time="" if kept.start_s is None else _write_time(kept.start_s),
            proven=kept.proven,
            because=because,
            since=_write_time(kept.since_s),
            solve=self._solves.get(kept.problem, SolveID("")),
        )


def _write_time(time_s: int) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
