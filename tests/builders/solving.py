"""The solver without a bus: what waits is decided, what was decided is believed."""

from __future__ import annotations

from collections.abc import Iterable

from contracts.ids import GangKey, SolveID
from contracts.lifecycle import LifecycleMessage
from contracts.messages import GangAllocated
from solver.allocate import allocate
from solver.decision import Decision
from solver.problem.assemble import assemble, find_missing_verdicts, resolve_gangs
from solver.problem.quota.asked import count_held
from solver.problem.quota.quotas import keep_quotas
from solver.queueing.gang_queue import GangQueue
from solver.queueing.queue_order import QueueOrder
from solver.queueing.rounds import BatchLimits
from solver.queueing.turns import pick_first
from solver.record import PartCache
from solver.selectors.table import SelectorTable
from solver.service.messages import make_decision
from solver.snapshot.snapshot import GangAged, Snapshot, SnapshotMessage, apply
from tests.builders.problems import CLUSTER, PARAMETERS, evaluate

MOST_BATCHES = 50


class Solving:
    """A snapshot, the queue beside it, and what was decided of each batch."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.decisions: list[Decision] = []
        self._queue = GangQueue()
        self._sequence = 0
        for record in snapshot.gangs.values():
            self._queue.follow(record)

    def hear(self, message: SnapshotMessage) -> None:
        """Believe a message, with the next sequence."""
        self._sequence += 1
        self.snapshot = apply(self.snapshot, message, sequence=1000 + self._sequence)
        if isinstance(message, LifecycleMessage):
            record = self.snapshot.gangs.get(message.key)
            assert record is not None
            self._queue.follow(record)
        if isinstance(message, GangAged):
            aged = self.snapshot.waiting.get(message.gang)
            assert aged is not None
            self._queue.note_age(aged)

    def decide(self, limits: BatchLimits | None = None) -> list[Decision]:
        """Decide until nobody's turn is left; returns what was decided."""
        decided: list[Decision] = []
        for _ in range(MOST_BATCHES):
            self._queue.wake(self.snapshot, self.snapshot.grown)
            self.snapshot = self.snapshot.without_grown()
            decision = self._decide_batch(limits or BatchLimits())
            if decision is None:
                self.decisions += decided
                return decided
            decided.append(decision)
        raise AssertionError("something is tried again and again")

    def _decide_batch(self, limits: BatchLimits) -> Decision | None:
        snapshot, features = self.snapshot, PARAMETERS.features
        order = QueueOrder(snapshot, features)
        pick = order.pick if order.has_queues else pick_first
        batch = self._queue.choose(snapshot, limits, admits=order.takes, pick=pick)
        if not batch:
            return None
        within = keep_quotas(snapshot, resolve_gangs(snapshot, batch, features))
        gangs, quotas = within.gangs, within.quotas
        table = SelectorTable()
        while wanted := find_missing_verdicts(snapshot, gangs, table):
            table = table.with_verdicts(wanted, [evaluate(*row) for row in wanted])
        problem = assemble(snapshot, gangs, table, PARAMETERS, quotas=quotas)
        decision = allocate(problem)
        pages = {page.sha: page.data for page in problem.pages}
        assert allocate(PartCache().problem(problem.data, pages)) == decision
        for record, gang, answer in zip(batch, gangs, decision.gangs, strict=True):
            quota = count_held(gang, answer.members)
            message = make_decision(
                answer,
                record,
                cluster=CLUSTER,
                solve=SolveID("s"),
                epoch=1,
                quota=quota,
            )
            if message is not None:
                self.hear(message)
        return decision

    def placed(self, gang: GangKey) -> GangAllocated:
        """Return the decision that a gang runs by, or will."""
        record = self.snapshot.gangs.get(gang)
        assert record is not None
        assert record.placed is not None
        return record.placed

    def counts(self, gangs: Iterable[GangKey]) -> list[int]:
        """Count the pods that gangs have."""
        records = [self.snapshot.gangs.get(gang) for gang in gangs]
        placed = [None if record is None else record.placed for record in records]
        return [0 if each is None else len(each.members) for each in placed]
