"""What is announced in, ResourceSlices out.

Keeps the slices of every pool as its node agent says, whatever others do to them. A
pool that several nodes announce, or that Kubernetes would
refuse, stays as it was, and so does one of a node that was never heard of: a bus that
has lost its memory takes nothing away. Knows no claims and no sink.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic

from contracts.ids import NodeName, PoolID
from publisher.errors import PublisherError
from publisher.pauses import UNDONE, Pause, Pauses
from publisher.slices.announcements import Announcements
from publisher.slices.plan_slices import plan_slices
from publisher.slices.sink import SlicePlan, SliceSink
from publisher.steps import Create, Update
from runtime.log import get_logger
from runtime.waits import first_of

_CHUNK = 64
"""Pools written together: a change waits for no more than these."""
_FAILED = Pause(free=0, first_s=0.1, most_s=10.0, forgotten_s=60.0)

log = get_logger(__name__)


class SliceReconciler:
    """What is announced, and which pools are to be looked at when."""

    def __init__(
        self,
        sink: SliceSink,
        announcements: Announcements,
        now: Callable[[], str],
    ) -> None:
        self._sink = sink
        self._announcements = announcements
        self._announced = announcements.announced
        self._now = now
        self._due: dict[PoolID, float] = {}
        """When each is looked at next."""
        self._news: set[PoolID] = set()
        """Of which the agent said something else since they were written."""
        self._rests_s: dict[PoolID, float] = {}
        """Until when those that others change are left alone."""
        self._failed: Pauses[PoolID] = Pauses(_FAILED)
        self._undone: Pauses[PoolID] = Pauses(UNDONE)
        self._refused: dict[PoolID, str] = {}
        self._unheard: dict[NodeName | None, set[PoolID]] = {}
        """Pools that are there, by nodes that have said nothing yet."""
        self._said: set[str] = set()
        """What was logged since all was well."""
        self._wake = asyncio.Event()
        announcements.listen(self._hear_news)

    def _hear_news(self, node: NodeName, pools: frozenset[PoolID]) -> None:
        """Write at once what a node says anew."""
        self._news |= pools
        for pool in pools | self._unheard.pop(node, set()):
            self._make_due(pool, 0.0)

    def hear(self, pools: Iterable[PoolID]) -> None:
        """Look again at pools that others changed."""
        now_s = monotonic()
        for pool in pools:
            self._make_due(pool, max(now_s, self._rests_s.get(pool, 0.0)))

    def _make_due(self, pool: PoolID, at_s: float) -> None:
        self._due[pool] = min(at_s, self._due.get(pool, at_s))
        self._wake.set()

    async def publish(self, stop: asyncio.Event) -> None:
        """Publish due pools, once everything that was announced is known."""
        await self._announcements.wait_synced(stop)
        self.hear(self._sink.pools())
        while not stop.is_set():
            self._wake.clear()
            while (chunk := self._take_due()) and not stop.is_set():
                await self._write(chunk)
            await first_of(stop, self._wake, within_s=self._rest_s())

    def _rest_s(self) -> float | None:
        """Give the seconds until something is due; None: nothing will be."""
        due_s = min(self._due.values(), default=None)
        return None if due_s is None else max(0.0, due_s - monotonic())

    def _take_due(self) -> list[PoolID]:
        now_s = monotonic()
        due = [pool for pool, at_s in self._due.items() if at_s <= now_s][:_CHUNK]
        for pool in due:
            del self._due[pool]
        return due

    async def _write(self, pools: Sequence[PoolID]) -> None:
        """Write due pools; those of a failed write are looked at again."""
        now = self._now()
        plans = {pool: plan for pool in pools if (plan := self._plan(pool, now))}
        news = self._news.intersection(pools)
        self._news -= news
        if not plans:
            return
        failures = await self._sink.carry_out(plans)
        self._news |= news.intersection(failures)
        now_s = monotonic()
        for pool in plans:
            if pool in failures:
                pause_s = self._failed.next_s(pool, now_s)
                least_s = getattr(failures[pool], "retry_after_s", None) or 0.0
                self._make_due(pool, now_s + max(pause_s, least_s))
                continue
            self._failed.forget(pool)
            if pool not in news:
                self._rests_s[pool] = now_s + self._undone.next_s(pool, now_s)
        self._say(failures)
        steps = [
            s for pool, plan in plans.items() if pool not in failures for s in plan
        ]
        if steps:
            log.info(
                "slices.published",
                pools=len(plans) - len(failures),
                written=sum(isinstance(step, Create | Update) for step in steps),
            )

    def _say(self, failures: Mapping[PoolID, PublisherError]) -> None:
        """Log what keeps writes from being done, each reason once until all is well."""
        for error in failures.values():
            reason = getattr(error, "reason", str(error))
            if reason not in self._said:
                self._said.add(reason)
                log.warning("slices.delayed", pools=len(failures), reason=str(error))
        if not failures:
            self._said.clear()

    def _plan(self, pool: PoolID, now: str) -> SlicePlan:
        """Plan what is to be done about a pool; nothing while it is in doubt."""
        wanted = self._announced.wanted(pool)
        if wanted is None:
            return self._plan_removal(pool, now)
        if isinstance(wanted, str):
            if self._is_news(pool, wanted):
                log.error("pool.refused", pool=str(pool), reason=wanted[:500])
            return ()
        owner = self._sink.owner(wanted)
        if isinstance(owner, str):
            if self._is_news(pool, owner):
                log.warning("pool.waiting", pool=str(pool), reason=owner)
            return ()
        self._refused.pop(pool, None)
        return plan_slices(wanted, self._sink.slices(pool), now=now, owner=owner)

    def _plan_removal(self, pool: PoolID, now: str) -> SlicePlan:
        """Give up a pool that nobody announces, once its node has said so."""
        observed = self._sink.slices(pool)
        nodes = {item.spec.node_name for item in observed}
        unheard = [node for node in nodes if not self._announced.has_heard(node)]
        for node in unheard:
            self._unheard.setdefault(node, set()).add(pool)
        return () if unheard else plan_slices(None, observed, now=now)

    def _is_news(self, pool: PoolID, reason: str) -> bool:
        """Whether it was not said yet why a pool stays as it is."""
        before = self._refused.get(pool)
        self._refused[pool] = reason
        return before != reason
