"""A batch that cannot be decided is halved; the gang that fails alone rests.

Whatever goes wrong (a worker that dies or is too slow, an answer that the judge
refuses, a Problem that cannot be made), the others of the batch are decided all the
same, with two solves more each time that the batch is halved. A gang that failed alone
is tried alone from then on, after the others and after growing rests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from time import monotonic

from msgspec import structs

from contracts.codec import encode
from contracts.ids import GangUID, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import MAX_REASON
from contracts.topics import SUBMISSIONS
from runtime.errors import PublishRefusedError, ServiceError
from runtime.log import get_logger
from runtime.refusals import Refusals
from solver.errors import SolverError, UndecidedError
from solver.service import metrics
from solver.service.decide import Changes, Decider
from solver.service.reserving import Reserving
from solver.service.suspects import Sign, Suspects
from solver.snapshot.snapshot import Snapshot

SHORTEST_GUARD = 8
"""A part of a batch gets at least this part of the time of a whole one."""

log = get_logger(__name__)


class Attempts:
    """Decides batches, and what to do when one cannot be decided."""

    def __init__(
        self,
        decider: Decider,
        refusals: Refusals,
        *,
        guard_s: float,
        snapshot: Callable[[], Snapshot],
        reserving: Reserving,
        believe: Callable[[Changes], None],
        rest: Callable[[GangRecord, float], None],
    ) -> None:
        """`believe` takes what was published, `rest` who waits until when."""
        self._reserving = reserving
        self._decider = decider
        self._refusals = refusals
        self._guard_s = guard_s
        self._snapshot = snapshot
        self._believe = believe
        self._rest = rest
        self._suspects = Suspects()

    async def decide(self, batch: Sequence[GangRecord]) -> None:
        """Decide a batch.

        Raises:
            PublishRefusedError: we do not lead any more.
            BusUnavailableError: the bus is away; try again.
        """
        signs = {
            record.key: self._sign(record)
            for record in batch
            if self._suspects.concern(record.namespace)
        }
        suspects = {gang for gang, sign in signs.items() if sign in self._suspects}
        others = [record for record in batch if record.key not in suspects]
        await self._try(others, self._guard_s)
        for record in batch:
            if record.key not in suspects:
                continue
            until = self._suspects.rest_until(signs[record.key])
            if until > monotonic():
                self._rest(record, until)
            else:
                await self._try([record], self._guard_s)

    async def _try(self, batch: Sequence[GangRecord], guard_s: float) -> None:
        """Decide a batch, or in halves what can be decided of it."""
        batch = self._still_waiting(batch)
        if not batch:
            return
        began = monotonic()
        try:
            changes = await self._decider.decide(
                self._reserving.clear(batch), batch, guard_s, self._reserving.explain
            )
        except ServiceError as error:
            if not isinstance(error, PublishRefusedError) or error.kind != "other":
                raise
            failure: Exception = error
        except Exception as error:  # noqa: BLE001 # one gang ends no other's decision
            failure = error
        else:
            self._believe(changes)
            self._clear(batch)
            return
        metrics.FAILED.inc()
        log.warning("batch.failed", gangs=len(batch), reason=_reason_of(failure))
        if len(batch) == 1:
            await self._put_aside(batch[0], failure, monotonic() - began)
            return
        if isinstance(failure, UndecidedError):
            # Its halves have less time: none of it is for what a new worker reads.
            await self._decider.warm(self._snapshot())
        middle = len(batch) // 2
        guard_s = max(guard_s / 2, self._guard_s / SHORTEST_GUARD)
        await self._try(batch[:middle], guard_s)
        await self._try(batch[middle:], guard_s)

    def _still_waiting(self, batch: Sequence[GangRecord]) -> list[GangRecord]:
        """Look the gangs up again: halves before this one took time."""
        gangs = self._snapshot().gangs
        found = [gangs.get(record.key) for record in batch]
        return [record for record in found if record is not None and record.is_tried]

    async def _put_aside(
        self, record: GangRecord, failure: Exception, cost_s: float
    ) -> None:
        subject = SUBMISSIONS.subject(
            self._decider.cluster, record.namespace, record.uid
        )
        if not isinstance(failure, SolverError | ServiceError):
            self._refusals.show_mistake(subject, failure)
        now = monotonic()
        until = self._suspects.note_failure(self._sign(record), now=now, cost_s=cost_s)
        self._rest(record, until)
        reason = _reason_of(failure)
        log.warning(
            "gang.failed", subject=subject, reason=reason, rest_s=round(until - now, 3)
        )
        if record.wants_growth:
            return  # it is in, and stays as it is
        solve = failure.solve if isinstance(failure, UndecidedError) else SolveID("")
        self._believe(await self._decider.publish_unproven(record, solve, reason))

    def _clear(self, batch: Sequence[GangRecord]) -> None:
        if len(batch) == 1 and self._suspects.concern(batch[0].namespace):
            self._suspects.clear(self._sign(batch[0]))

    def _sign(self, record: GangRecord) -> Sign:
        """Sum up what a gang's objects say."""
        content: object
        try:
            (part,) = self._decider.resolve(self._snapshot(), [record])
            content = structs.replace(part, uid=GangUID(""), name="")
        except Exception:  # noqa: BLE001 # then by what was submitted
            content = None if record.submission is None else record.submission.gang.spec
        digest = sha256(encode(content)).hexdigest()
        return Sign(record.namespace, digest)


def _reason_of(failure: Exception) -> str:
    if isinstance(failure, UndecidedError):
        return failure.reason[:MAX_REASON]
    return f"{type(failure).__name__}: {failure}"[:MAX_REASON]
