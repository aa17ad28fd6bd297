"""What the cluster holds, said on the bus: one message an object, the newest version.

A publisher that begins to lead reads what the bus holds and says only what differs.
Many messages are in flight, but never two of one object. Decides nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from contracts import messages, subjects
from contracts.errors import ContractsError
from contracts.ids import ClusterName
from contracts.messages import ObjectGone, ObjectObserved
from contracts.process.bus import Bus
from contracts.process.errors import BusError
from contracts.process.log import get_logger
from contracts.process.waits import first_of
from contracts.process.wire import Outgoing
from contracts.subjects import untoken
from publisher.changes import Change, Page
from publisher.cluster.compact import compact
from publisher.cluster.outbox import Outbox
from publisher.errors import NotLeadingError

_BATCH = 1000
_PAUSE_S = 1.0
_SHOWN = 500

log = get_logger(__name__)


class StatePublisher:
    """The newest of every object, and what of it the bus does not hold yet."""

    def __init__(self, cluster: ClusterName, bus: Bus) -> None:
        self._cluster = cluster
        self._bus = bus
        self._outbox = Outbox()
        self._wake = asyncio.Event()
        self._flushed = asyncio.Condition()
        self._leads = False
        self.counts: Counter[str] = Counter()
        """Objects said and refused."""

    async def take(self, page: Page) -> None:
        """Take changes in; what differs from the bus is said soon."""
        for change in page.changes:
            self._take(change)
        if self._outbox:
            self._wake.set()

    async def publish(self, stop: asyncio.Event) -> None:
        """Say everything that is due, from now until `stop`."""
        self._leads = True
        try:
            await self._begin(stop)
            while not stop.is_set():
                self._wake.clear()
                while self._outbox and not stop.is_set():
                    await self._say_some(stop)
                async with self._flushed:
                    self._flushed.notify_all()
                await first_of(self._wake, stop)
        finally:
            self._leads = False
            self._outbox.end()
            async with self._flushed:
                self._flushed.notify_all()

    async def published(self, kind: str, key: str) -> int:
        """Wait until all that was taken in is on the bus, and this object once more.

        Gives the sequence of that repetition: the stream holds the rest before it.

        Raises:
            NotLeadingError: another publisher says what the cluster holds.
            BusError: it could not be stored.
        """
        async with self._flushed:
            await self._flushed.wait_for(self._is_flushed)
        if not self._leads:
            raise NotLeadingError
        subject = subjects.state(self._cluster, kind, key)
        return await self._bus.publish(
            _outgoing(self._cluster, subject, self._outbox.wanted(subject))
        )

    def _is_flushed(self) -> bool:
        return not self._leads or (self._outbox.knows_bus and not self._outbox)

    def _take(self, change: Change) -> None:
        subject = subjects.state(self._cluster, change.kind, change.key)
        raw = change.object
        if raw is None:
            self._outbox.put(subject, None)
            return
        try:
            found = compact(raw)
        except ContractsError as error:
            self.counts["refused"] += 1
            name = f"{change.kind} {change.key}"
            log.error("object.refused", object=name, reason=str(error)[:_SHOWN])  # noqa: TRY400 # the reason is the whole story
            found = None
        data = None
        if found is not None:
            message = ObjectObserved(
                cluster=self._cluster, kind=change.kind, key=change.key, object=found
            )
            data = messages.STATE.encode(message)
        self._outbox.put(subject, data, int(raw["metadata"]["resourceVersion"]))

    async def _begin(self, stop: asyncio.Event) -> None:
        """Learn what the bus holds, however long that takes."""
        wanted = [subjects.wildcard("state", self._cluster)]
        held: dict[str, bytes] = {}
        done = asyncio.Event()
        async for page in self._bus.follow("STATE", wanted, done):
            for received in page.messages:
                held.pop(received.subject, None)
                if not received.gone and not _is_tombstone(received.data):
                    held[received.subject] = received.data
            if page.synced or stop.is_set():
                done.set()
        self._outbox.begin(held)
        log.info("state.compared", on_bus=len(held), differing=len(self._outbox))

    async def _say_some(self, stop: asyncio.Event) -> None:
        """Say a batch: one message a subject, so that none overtakes another."""
        batch = list(self._outbox.next(_BATCH))
        outgoing = [_outgoing(self._cluster, *item) for item in batch]
        try:
            if len(outgoing) == 1:
                await self._bus.publish(outgoing[0])
            else:
                await self._bus.publish_many(outgoing)
        except BusError as error:
            log.warning("state.delayed", objects=len(batch), reason=str(error))
            await first_of(stop, within_s=_PAUSE_S)
            return
        self._outbox.done(batch)
        self.counts["said"] += len(batch)


def _outgoing(cluster: ClusterName, subject: str, data: bytes | None) -> Outgoing:
    if data is None:
        *_, kind, key = (untoken(token) for token in subject.split("."))
        data = messages.STATE.encode(ObjectGone(cluster=cluster, kind=kind, key=key))
    return Outgoing(subject=subject, data=data, zstd=True)


def _is_tombstone(data: bytes) -> bool:
    """Whether a message says that an object is gone; what cannot be read is none."""
    try:
        return isinstance(messages.STATE.decode(data), ObjectGone)
    except ContractsError:
        return False
