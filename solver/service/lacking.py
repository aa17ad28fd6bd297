"""Which nodes gangs lack, looked at beside the decisions and told with them.

A look is about one gang. It begins only while nobody is lined up, and takes a fifth of
the time at most; a batch waits for one question of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from time import monotonic, time

from msgspec import structs

from contracts.ids import GangKey
from contracts.messages import GangPending
from runtime.log import get_logger
from solver.decision import DECISION, Decision
from solver.errors import VerdictMissingError, WorkerError
from solver.problem.problem import Problem
from solver.service.decide import Decider
from solver.service.reserving import Reserving
from solver.snapshot.snapshot import Snapshot
from solver.timeline.asking import Asking, ask_next
from solver.timeline.lacking import Lacking
from solver.timeline.reservations import name_gang

LOOK_S = 5.0
"""Between two looks, at least."""
REST = 4
"""How many times as long as a look the rest after it is."""
GUARD_S = 5.0
"""Of one question; its deterministic time is what bounds it."""
WORK = 0.5
"""Deterministic time of one question."""
MOST_QUESTIONS = 48
"""Of one look; who would need more is told nothing."""

log = get_logger(__name__)


class LackingNodes:
    """What gangs are told that they lack, by the solver that leads."""

    def __init__(
        self,
        decider: Decider,
        reserving: Reserving,
        snapshot: Callable[[], Snapshot],
        lined_up: Callable[[], int],
    ) -> None:
        """`lined_up` counts the gangs that a batch would take."""
        self._decider = decider
        self._reserving = reserving
        self._snapshot = snapshot
        self._lined_up = lined_up
        self._lacking = Lacking()

    def begin(self) -> None:
        """Begin to lead: what gangs were told stays until it was asked anew."""
        self._lacking = Lacking()

    async def look(self) -> float:
        """Ask about one gang; gives the seconds until the next look."""
        snapshot, now_s, began_s = self._snapshot(), int(time()), monotonic()
        if self._lined_up() or not self._reserving.is_known:
            return LOOK_S
        # Beside the loop: many may wait.
        record = await asyncio.to_thread(self._lacking.choose, snapshot, now_s)
        asker = None if record is None else self._decider.make_asker(snapshot, record)
        if record is None or asker is None:
            return LOOK_S
        # What is kept for others does not count as free.
        state = self._reserving.clear([record])
        asking = self._lacking.ask(asker.limited(WORK), state, record, now_s)
        try:
            await self._answer(asking)
        except (VerdictMissingError, WorkerError) as error:
            log.warning("lacking.unsure", gang=name_gang(record), reason=str(error))
            self._lacking.rest(record.key, now_s)
        return max(LOOK_S, REST * (monotonic() - began_s))

    async def _answer(self, asking: Asking[None]) -> None:
        answer: Decision | None = None
        for _ in range(MOST_QUESTIONS):
            asked = await asyncio.to_thread(ask_next, asking, answer)
            if not isinstance(asked, Problem):
                return
            answer = DECISION.decode(await self._decider.ask(asked, GUARD_S))

    def make_news(
        self, snapshot: Snapshot, epoch: int, besides: Collection[GangKey]
    ) -> tuple[GangPending, ...]:
        """Make what is to be said of nodes that gangs lack, or lack no more.

        `besides`: gangs that are told something else just now; they come next time.
        """
        return tuple(
            structs.replace(record.decision, epoch=epoch, lacks=lacks)
            for record, lacks in self._lacking.list_news(snapshot)
            if isinstance(record.decision, GangPending) and record.key not in besides
        )
