"""One batch after the other: who is decided next, and who is tried again at once."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from contracts.allocation import Reason
from contracts.ids import GangKey
from contracts.lifecycle import GangRecord
from runtime.metrics import QueueMetrics
from solver.problem.quota.quotas import is_held_up_by_others
from solver.problem.sharing import waits_for_another
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import BatchLimits
from solver.queueing.turns import pick_first
from solver.service.attempts import Attempts
from solver.service.config import SolverConfig
from solver.service.decide import Decider
from solver.service.reserving import Reserving
from solver.snapshot.snapshot import Snapshot
from solver.timeline.reservations import OneWay


class Batches:
    """Takes batches from the queue and lets them be decided."""

    def __init__(
        self,
        config: SolverConfig,
        queue: GangQueue,
        decider: Decider,
        attempts: Attempts,
        snapshot: Callable[[], Snapshot],
        *,
        reserving: Reserving,
        work: QueueMetrics[GangKey],
    ) -> None:
        self._limits = BatchLimits(gangs=config.batch_gangs, pods=config.batch_pods)
        self._queue = queue
        self._decider = decider
        self._attempts = attempts
        self._reserving = reserving
        self._snapshot = snapshot
        self._work = work

    async def decide_next(self) -> bool:
        """Decide those whose turn it is; False: nobody's.

        Raises:
            PublishRefusedError: we do not lead any more.
            BusUnavailableError: the bus is away; try again.
        """
        snapshot = self._snapshot()
        batch = self._choose(snapshot)
        if not batch:
            return False
        for record in batch:
            self._work.added(record.key)
            self._work.taken(record.key)
        try:
            await self._attempts.decide(batch)
        except Exception:
            self._queue.retry(record.key for record in batch)
            raise
        finally:
            for record in batch:
                self._work.done(record.key)
        # What a namespace holds may have grown since they were chosen.
        waiting = self._snapshot().waiting
        records = [waiting.get(record.key) for record in batch]
        left = [record for record in records if record is not None]
        self._work.retried(len(left))
        self._queue.retry(record.key for record in left if _is_next(record.reasons))
        return True

    def _choose(self, snapshot: Snapshot) -> tuple[GangRecord, ...]:
        for aside in self._reserving.admissions(self._queue.is_lined_up):
            if batch := self._choose_beside(snapshot, aside):
                return batch
        return ()

    def _choose_beside(
        self, snapshot: Snapshot, aside: OneWay
    ) -> tuple[GangRecord, ...]:
        order = self._decider.order(snapshot)
        return self._queue.choose(
            snapshot,
            self._limits,
            now=monotonic(),
            admits=lambda record: aside.takes(record) and order.takes(record),
            pick=order.pick if order.has_queues else pick_first,
        )


def _is_next(reasons: tuple[Reason, ...]) -> bool:
    """True if a gang was not tried because of what others of its batch ask for."""
    return is_held_up_by_others(reasons) or waits_for_another(reasons)
