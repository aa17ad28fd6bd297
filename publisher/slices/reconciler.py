"""What is announced in, ResourceSlices out.

Keeps the slices of every pool as its node agent says, whatever others do to them. A
pool that several nodes announce, or that Kubernetes would refuse, stays as it was, and
so does one of a node that was never heard of: a bus that has lost its memory takes
nothing away. Knows no claims and no sink.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic

from contracts.ids import NodeName, PoolID
from contracts.messages import MAX_REASON
from publisher.pauses import UNDONE, Pause, Pauses
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.plan_slices import plan_slices
from publisher.slices.sink import SinkError, SlicePlan, SliceSink
from publisher.steps import Create, Update
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.waits import first_of

_CHUNK = 64
"""Pools written together: a change waits for no more than these."""
_FAILED = Pause(free=0, first_s=0.1, most_s=10.0, forgotten_s=60.0)

log = get_logger(__name__)


class SliceReconciler:
    """Keeps the slices of pools as their node agents announce them."""

    def __init__(
        self, sink: SliceSink, announced: AnnouncedPools, now: Callable[[], str]
    ) -> None:
        self._sink = sink
        self._announced = announced
        self._now = now
        self._due: dict[PoolID, float] = {}
        """When each pool is looked at next."""
        self._news: set[PoolID] = set()
        """Pools of which the agent said something else since they were written."""
        self._rests_s: dict[PoolID, float] = {}
        """Until when pools that others change are left alone."""
        self._failed: Pauses[PoolID] = Pauses(_FAILED)
        self._undone: Pauses[PoolID] = Pauses(UNDONE)
        self._refused: dict[PoolID, str] = {}
        """Why pools stay as they are, as it was logged."""
        self._unheard: dict[NodeName | None, set[PoolID]] = {}
        """Pools that are there, by nodes that have said nothing yet."""
        self._logged: set[str] = set()
        """Reasons of failures that were logged since all was well."""
        self._wake = asyncio.Event()
        self._refusals = Refusals()

    def hear(self, node: NodeName, pools: frozenset[PoolID]) -> None:
        """Write at once what a node says anew."""
        self._news |= pools
        for pool in pools | self._unheard.pop(node, set()):
            self._make_due(pool, 0.0)

    def look_at(self, pools: Iterable[PoolID]) -> None:
        """Look again at pools that others changed."""
        now_s = monotonic()
        for pool in pools:
            self._make_due(pool, max(now_s, self._rests_s.get(pool, 0.0)))

    def _make_due(self, pool: PoolID, at_s: float) -> None:
        self._due[pool] = min(at_s, self._due.get(pool, at_s))
        self._wake.set()

    async def publish(self, stop: asyncio.Event) -> None:
        """Publish due pools until `stop`; begin when all announcements are known."""
        self.look_at(self._sink.pools())
        while not stop.is_set():
            self._wake.clear()
            while (chunk := self._take_due()) and not stop.is_set():
                await self._write_pools(chunk)
            await first_of(stop, self._wake, within_s=self._next_s())

    def _next_s(self) -> float | None:
        """Return the seconds until something is due; None: nothing will be."""
        due_s = min(self._due.values(), default=None)
        return None if due_s is None else max(0.0, due_s - monotonic())

    def _take_due(self) -> list[PoolID]:
        now_s = monotonic()
        due = [pool for pool, at_s in self._due.items() if at_s <= now_s][:_CHUNK]
        for pool in due:
            del self._due[pool]
        return due

    async def _write_pools(self, pools: Sequence[PoolID]) -> None:
        """Write due pools; those of a failed write are looked at again."""
        # First plan all of them; what needs no write is done.
        now = self._now()
        plans: dict[PoolID, SlicePlan] = {}
        for pool in pools:
            with self._refusals.guard(f"pool/{pool}"):
                plans[pool] = self._plan_pool(pool, now)
        plans = {pool: plan for pool, plan in plans.items() if plan}
        news = self._news.intersection(pools)
        self._news -= news
        if not plans:
            return
        # Then write; what failed is still news, and due again after a pause.
        failures = await self._sink.carry_out(plans)
        self._news |= news.intersection(failures)
        now_s = monotonic()
        for pool in plans:
            error = failures.get(pool)
            if error is not None:
                pause_s = self._failed.next_s(pool, now_s)
                self._make_due(pool, now_s + max(pause_s, error.retry_after_s or 0.0))
                continue
            self._failed.forget(pool)
            if pool not in news:
                # Written although no agent said so: somebody else had changed it.
                self._rests_s[pool] = now_s + self._undone.next_s(pool, now_s)
        # Last say what was done and what was not.
        self._log_failures(failures)
        self._log_written([plans[pool] for pool in plans if pool not in failures])

    def _log_written(self, plans: Sequence[SlicePlan]) -> None:
        written = [isinstance(step, Create | Update) for plan in plans for step in plan]
        if written:
            log.info("slices.published", pools=len(plans), written=sum(written))

    def _log_failures(self, failures: Mapping[PoolID, SinkError]) -> None:
        """Log what keeps writes from being done, each reason once until all is well."""
        for error in failures.values():
            if error.reason not in self._logged:
                self._logged.add(error.reason)
                log.warning("slices.delayed", pools=len(failures), reason=str(error))
        if not failures:
            self._logged.clear()

    def _plan_pool(self, pool: PoolID, now: str) -> SlicePlan:
        """Plan what is to be done about a pool; nothing while it is in doubt."""
        layout = self._announced.layout_of(pool)
        if layout is None:
            return self._plan_removal(pool, now)
        if isinstance(layout, str):
            if self._is_news(pool, layout):
                log.error("pool.refused", pool=str(pool), reason=layout[:MAX_REASON])
            return ()
        owner = self._sink.owner_of(layout)
        if isinstance(owner, str):
            if self._is_news(pool, owner):
                log.warning("pool.waiting", pool=str(pool), reason=owner)
            return ()
        self._refused.pop(pool, None)
        return plan_slices(layout, self._sink.slices(pool), now=now, owner=owner)

    def _plan_removal(self, pool: PoolID, now: str) -> SlicePlan:
        """Give up a pool that nobody announces, once its node has said so."""
        observed = self._sink.slices(pool)
        nodes = {slice_.spec.node_name for slice_ in observed}
        unheard = [node for node in nodes if not self._announced.has_heard(node)]
        for node in unheard:
            self._unheard.setdefault(node, set()).add(pool)
        return () if unheard else plan_slices(None, observed, now=now)

    def _is_news(self, pool: PoolID, reason: str) -> bool:
        """Note why a pool stays as it is; returns True if that was not logged yet."""
        last = self._refused.get(pool)
        self._refused[pool] = reason
        return last != reason
