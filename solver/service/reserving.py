"""Reservations beside the decisions: looked at now and then, never in front of them.

The leader keeps the book (`solver.timeline.keeper`). What it promises is in the last
decision of the gang, so another leader goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from time import monotonic, time
from typing import TypeVar

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.counts import listed
from contracts.ids import ClusterName, GangKey, SolveID
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
from solver.timeline.asking import Asker, Asking
from solver.timeline.book import keep_clear, list_in_the_way, make_way
from solver.timeline.keeper import Book, Look, keep_book
from solver.timeline.reserve import Reservation, Scene
from solver.timeline.runs import duration_of, list_runs

LOOK_S = 5.0
"""Between two looks at all reservations."""
MOST_WAYS = 4
"""Gangs in one look for which others are moved aside."""
GUARD_S = 20.0
"""Of one question."""
MOST_NAMED = 3
T = TypeVar("T")

log = get_logger(__name__)


class Reserving:
    """What is kept for whom, by the solver that leads."""

    def __init__(
        self,
        config: SolverConfig,
        decider: Decider,
        snapshot: Callable[[], Snapshot],
        retry: Callable[[Iterable[GangKey]], None],
    ) -> None:
        """`retry` lets gangs be tried again that something was in the way of."""
        self._cluster: ClusterName = config.cluster
        self._patience_s = config.read_patience()
        self._decider = decider
        self._snapshot = snapshot
        self._retry = retry
        self._book = Book()
        self._bound: dict[GangKey, None] = {}
        """Gangs in whose way something is that is kept for others."""
        self._asked: dict[str, tuple[Problem, Decision, bytes]] = {}
        self._solves: dict[str, SolveID] = {}
        """Recorded solves of what is kept, by the Problem's hash."""
        self._due_s = 0.0

    def begin(self) -> None:
        """Begin to lead: what was promised is known from the gangs that were told."""
        self._book, self._due_s = Book(), 0.0

    # --- beside a batch --------------------------------------------------------------

    def list_aside(self, record: GangRecord) -> tuple[Reservation, ...]:
        """List what a gang must leave alone if it starts now."""
        if not self._book.kept:
            return ()
        return list_in_the_way(record, self._book.kept, int(time()))

    def admission(self) -> OneWay:
        """Begin a batch: who may be tried beside whom, as far as something is kept."""
        return OneWay(self.list_aside)

    def clear(self, batch: Sequence[GangRecord]) -> Snapshot:
        """Return the cluster as gangs of one batch may use it."""
        return keep_clear(self._snapshot(), self.list_aside(batch[0]))

    def explain(self, record: GangRecord) -> tuple[Reason, ...]:
        """Say what is kept for others that a gang must leave alone, and remember it."""
        aside = self.list_aside(record)
        if not aside:
            self._bound.pop(record.key, None)
            return ()
        self._bound[record.key] = None
        names = listed([_name(each.record) for each in aside[:MOST_NAMED]])
        known = "runs for longer" if duration_of(record) else "gives no duration"
        message = (
            f"devices are kept for {names}, which come first; this gang could have "
            f"them if it ended before, but it {known}"
        )
        return (Reason(rule=Rule.RESERVED, message=message),)

    # --- between batches -------------------------------------------------------------

    async def look(self) -> None:
        """Look at all reservations if that is due."""
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
        look = Look(
            snapshot=snapshot,
            now_s=int(time()),
            asker_of=lambda record: self._make_asker(snapshot, record),
            patience_s=self._patience_s,
        )
        before = self._book
        if not before.kept and snapshot.promised:
            await self._decider.learn(snapshot, snapshot.promised.values())
        self._book = await self._answer(keep_book(before, look))
        for was, why in self._book.late:
            metrics.MOVED_LATER.inc()
            log.warning("promise.moved", gang=_name(was.record), reason=why)
        self._bound = {gang: None for gang in self._bound if gang in snapshot.waiting}
        for gang in list(self._bound)[:MOST_WAYS] if self._book.kept else ():
            await self._make_way(look, snapshot.waiting.get(gang))
        if self._book.kept != before.kept:
            await self._record()
            bound, self._bound = self._bound, {}
            self._retry(bound)

    async def _make_way(self, look: Look, record: GangRecord | None) -> None:
        # Who is asked about comes last the next time.
        if record is None:
            return
        del self._bound[record.key]
        self._bound[record.key] = None
        runs = list_runs(look.snapshot, look.now_s)
        scene = Scene(
            snapshot=look.snapshot, runs=runs, kept=self._book.kept, now_s=look.now_s
        )
        moved = await self._answer(make_way(look.asker_of, scene, record))
        if moved is not None:
            self._book = structs.replace(self._book, kept=moved)

    def _make_asker(self, snapshot: Snapshot, record: GangRecord) -> Asker | None:
        return self._decider.make_asker(snapshot, record)

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
        kept = {each.problem for each in self._book.kept}
        self._solves = {k: v for k, v in self._solves.items() if k in kept}
        for sha in sorted(kept - self._solves.keys()):
            if sha in self._asked:
                await self._decider.record(*self._asked[sha])
                self._solves[sha] = solve_id(self._asked[sha][0])

    # --- what is promised ------------------------------------------------------------

    def make_promises(self, snapshot: Snapshot, epoch: int) -> tuple[GangPending, ...]:
        """Make what is to be said of starts that are promised, or are not any more."""
        kept = {each.key: self._make_expected(each) for each in self._book.kept}
        told = {r.key for r in snapshot.promised.values()} | kept.keys()
        records = (snapshot.waiting.get(gang) for gang in sorted(told))
        return tuple(
            structs.replace(record.decision, epoch=epoch, expected=kept.get(record.key))
            for record in records
            if record is not None
            and isinstance(record.decision, GangPending)
            and record.expected != kept.get(record.key)
            and record.key not in self._book.unknown
            and self._due_s
        )

    def _make_expected(self, kept: Reservation) -> ExpectedStart:
        late = {was.key: why for was, why in self._book.late}
        gangs = self._snapshot().gangs
        holders = [record for key in kept.after if (record := gangs.get(key))]
        names = [_name(record) for record in holders]
        more = len(names) - MOST_NAMED
        shown = names[-MOST_NAMED:] + ([f"{more} more"] if more > 0 else [])
        because = f"{listed(shown)} must end first" if shown else "it starts next"
        if kept.key in late:
            because += f"; later than before: {late[kept.key]}"
        return ExpectedStart(
            time="" if kept.start_s is None else _write_time(kept.start_s),
            proven=kept.proven,
            because=because,
            since=_write_time(kept.since_s),
            solve=self._solves.get(kept.problem, SolveID("")),
        )


class OneWay:
    """Lets gangs into one batch in whose way the same is kept for others."""

    def __init__(
        self, list_aside: Callable[[GangRecord], tuple[Reservation, ...]]
    ) -> None:
        self._list_aside = list_aside
        self._aside: frozenset[GangKey] | None = None
        """Of the gangs that are in the batch; None: none is."""

    def takes(self, record: GangRecord) -> bool:
        """Take a gang into the batch; False: it is for another one."""
        aside = frozenset(each.key for each in self._list_aside(record))
        if self._aside is None:
            self._aside = aside
        return self._aside == aside


def _name(record: GangRecord) -> str:
    return f"{record.namespace}/{record.name}"


def _write_time(time_s: int) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
