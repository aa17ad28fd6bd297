"""Inventories and health in, ResourceSlices out.

Follows what node agents announce and keeps the slices of every pool as they say. A
pool that several nodes announce, or that Kubernetes would refuse, stays as it was.
Knows no claims.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from contracts import messages, subjects
from contracts.codec import Codec
from contracts.device import ResourceSlice
from contracts.errors import ContractsError
from contracts.ids import NodeName, PoolID
from contracts.process.bus import Bus
from contracts.process.log import get_logger
from contracts.process.run import Task
from contracts.process.wire import Received
from contracts.subjects import untoken
from publisher.announced import Announced
from publisher.config import PublisherConfig
from publisher.errors import FolderError
from publisher.folder.files import Folder
from publisher.plan_slices import plan_slices
from publisher.steps import Create, Published, Step, Update, after, key_of

_IDLE_S = 1.0

log = get_logger(__name__)


class SliceWriter:
    """What is announced and what is published."""

    def __init__(
        self,
        config: PublisherConfig,
        bus: Bus,
        folder: Folder,
        published: Iterable[Published],
        now: Callable[[], str],
    ) -> None:
        self._config = config
        self._bus = bus
        self._folder = folder
        self._now = now
        self._announced = Announced(owned_drivers=frozenset(config.owned_drivers))
        self._slices: dict[PoolID, tuple[ResourceSlice, ...]] = {}
        for item in published:
            if isinstance(item, ResourceSlice):
                pool = PoolID(item.spec.driver, item.spec.pool.name)
                self._slices[pool] = (*self._slices.get(pool, ()), item)
        self._due: set[PoolID] = set(self._slices)
        self._refused: dict[PoolID, str] = {}
        self._unsynced = {"inv", "health"}
        self._wake = asyncio.Event()
        self.counts: Counter[str] = Counter()
        """Messages taken in and refused, by entity."""

    def tasks(self) -> dict[str, Task]:
        """Name what runs for as long as the service does."""
        return {
            "inventories": self._follow_inventories,
            "health": self._follow_health,
            "slices": self._publish,
        }

    # --- messages in ---------------------------------------------------------------

    async def _follow_inventories(self, stop: asyncio.Event) -> None:
        await self._follow("INV", "inv", messages.INVENTORY, stop)

    async def _follow_health(self, stop: asyncio.Event) -> None:
        await self._follow("HEALTH", "health", messages.HEALTH, stop)

    async def _follow(
        self, stream: str, entity: str, codec: Codec[Any], stop: asyncio.Event
    ) -> None:
        wanted = [subjects.wildcard(entity, self._config.cluster)]
        async for page in self._bus.follow(stream, wanted, stop):
            for received in page.messages:
                self._take(received, entity, codec)
            if page.synced and entity in self._unsynced:
                self._unsynced.discard(entity)
                log.info("stream.synced", stream=stream)
            if page.messages or page.synced:
                self._wake.set()
        self._wake.set()

    def _take(self, received: Received, entity: str, codec: Codec[Any]) -> None:
        node = NodeName(untoken(received.subject.rpartition(".")[2]))
        message: Any = None
        if not received.gone:
            try:
                message = codec.decode(received.data)
            except ContractsError as error:
                self._refuse(received.subject, entity, str(error))
                return
            if (message.cluster, message.node) != (self._config.cluster, node):
                reason = f"is about node {message.node}"
                self._refuse(received.subject, entity, reason)
                return
        self.counts[entity] += 1
        if entity == "health":
            self._due |= self._announced.judge(node, message)
        else:
            self._due |= self._announced.announce(node, message)

    def _refuse(self, subject: str, entity: str, reason: str) -> None:
        self.counts[f"{entity}.refused"] += 1
        log.error("message.refused", subject=subject, reason=reason[:500])

    # --- slices out ------------------------------------------------------------------

    async def _publish(self, stop: asyncio.Event) -> None:
        """Publish due pools, once everything that was announced is known."""
        while not stop.is_set():
            self._wake.clear()
            if not self._unsynced and self._due:
                await self._publish_due()
            await self._idle()

    async def _publish_due(self) -> None:
        """Write all due pools; those of a failed write stay due."""
        due, self._due = sorted(self._due), set()
        now = self._now()
        plans = {pool: self._plan(pool, now) for pool in due}
        steps = [step for plan in plans.values() for step in plan]
        if not steps:
            return
        try:
            await asyncio.to_thread(self._folder.carry_out, steps)
        except FolderError as error:
            log.warning("slices.delayed", pools=len(due), reason=str(error))
            self._due |= set(due)
            return
        for pool, plan in plans.items():
            before = {key_of(item): item for item in self._slices.pop(pool, ())}
            left = tuple(
                item
                for item in after(before, plan).values()
                if isinstance(item, ResourceSlice)
            )
            if left:
                self._slices[pool] = left
        log.info(
            "slices.published",
            pools=sum(1 for plan in plans.values() if plan),
            written=sum(isinstance(step, Create | Update) for step in steps),
        )

    def _plan(self, pool: PoolID, now: str) -> tuple[Step, ...]:
        wanted = self._announced.wanted(pool)
        if isinstance(wanted, str):
            if self._refused.get(pool) != wanted:
                log.error("pool.refused", pool=str(pool), reason=wanted[:500])
            self._refused[pool] = wanted
            return ()
        self._refused.pop(pool, None)
        return plan_slices(wanted, self._slices.get(pool, ()), now=now)

    async def _idle(self) -> None:
        try:
            async with asyncio.timeout(_IDLE_S):
                await self._wake.wait()
        except TimeoutError:
            return
