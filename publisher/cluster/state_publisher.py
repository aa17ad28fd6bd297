"""What the cluster holds, said on the bus: one message an object, the newest version.

A publisher that begins to lead reads what the bus holds and says only what differs; so
it does after each reconnect, because a bus may have lost everything. Many messages are
in flight, but never two of one object. Decides nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from contracts.ids import ClusterName
from contracts.messages import ObjectGone, ObjectObserved
from contracts.topics import STATE
from publisher.cluster.compact import compact, pinned_node_of
from publisher.cluster.opened_pods import OpenedPods
from publisher.cluster.outbox import Outbox
from publisher.cluster.outbox_sender import send_due
from publisher.errors import NotLeadingError
from publisher.kube.changes import Change, ChangePage
from runtime.bus.bus import Bus
from runtime.kube.kinds import POD
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.waits import first_of
from runtime.wire import Outgoing

_LOOK_S = 2.0

log = get_logger(__name__)


class StatePublisher:
    """The newest of every object, and what of it the bus does not hold yet."""

    def __init__(
        self, cluster: ClusterName, bus: Bus, opened: OpenedPods | None = None
    ) -> None:
        """`opened` knows which pods use a node before they are on it."""
        self._cluster = cluster
        self._bus = bus
        self._opened = opened or OpenedPods(lambda _: None)
        self._undecided: dict[str, tuple[Change, object]] = {}
        """Pods that say that we pinned them, of which no decision is known; each with
        what it was judged by."""
        self._outbox = Outbox()
        self._wake = asyncio.Event()
        self._flushed = asyncio.Condition()
        self._leads = False
        self._connection = 0
        """The bus's connection when it was last read."""
        self._sequence = 0
        """The stream's sequence after which everything that was said is there."""
        self.counts: Counter[str] = Counter()
        """Objects sent."""
        self._refusals = Refusals()

    async def take(self, page: ChangePage) -> None:
        """Note changes; what differs from the bus is published soon, while we lead."""
        for change in page.changes:
            self._put_change(change)
        if self._outbox:
            self._wake.set()

    async def publish(self, stop: asyncio.Event) -> None:
        """Publish everything that is due, from now until `stop`."""
        self._leads = True
        self._connection = 0
        try:
            while not stop.is_set():
                self._wake.clear()
                # What was decided may be read after the pod that it opened.
                for change, judged_by in tuple(self._undecided.values()):
                    if self._opened.evidence_on(change.object) != judged_by:
                        self._put_change(change)
                # First see what the bus holds, anew after each reconnect.
                if self._connection != self._bus.connection:
                    await self._compare_with_bus(stop)
                # Then publish what differs, and tell those who wait for it.
                while self._outbox and not stop.is_set():
                    await self._publish_some(stop)
                    await self._notify_waiting()
                await self._notify_waiting()
                await first_of(self._wake, stop, within_s=_LOOK_S)
        finally:
            self._leads = False
            self._outbox.end()
            await self._notify_waiting()

    async def wait_published(self) -> int:
        """Wait until everything that was taken in is on the bus.

        Returns a sequence of STATE: whoever has read so far knows all of it.

        Raises:
            NotLeadingError: another publisher says what the cluster holds.
        """
        changes = self._outbox.changes
        async with self._flushed:
            await self._flushed.wait_for(
                lambda: not self._leads or self._outbox.published >= changes
            )
        if not self._leads:
            raise NotLeadingError
        return self._sequence

    async def _notify_waiting(self) -> None:
        async with self._flushed:
            self._flushed.notify_all()

    def _put_change(self, change: Change) -> None:
        subject = STATE.subject(self._cluster, change.kind, change.key)
        raw = change.object
        self._undecided.pop(subject, None)
        if raw is None:
            self._opened.forget(change.uid)
            self._outbox.put(subject, None)
            return
        if (raw.get("spec") or {}).get("nodeName"):
            self._opened.forget(raw["metadata"].get("uid", ""))
        version = int(raw["metadata"]["resourceVersion"])
        if self._outbox.has(subject, version):
            return
        body, data = None, None
        with self._refusals.guard(f"{change.kind}/{change.key}"):
            body = compact(raw, self._opened.is_decided)
            if change.kind == POD.name and body is None and pinned_node_of(raw):
                # It may turn out to be ours though it stays as it is: then this
                # version is to be said.
                self._undecided[subject] = change, self._opened.evidence_on(raw)
                version = 0
        if body is not None:
            message = ObjectObserved(
                cluster=self._cluster, kind=change.kind, key=change.key, object=body
            )
            data = STATE.codec.encode(message)
        self._outbox.put(subject, data, version)

    async def _compare_with_bus(self, stop: asyncio.Event) -> None:
        """Learn what the bus holds, however long that takes."""
        self._connection = self._bus.connection
        self._outbox.end()
        self._sequence = 0
        held: dict[str, bytes] = {}
        async for batch in self._bus.read_existing(STATE, self._cluster, stop=stop):
            for incoming in batch.messages:
                subject = STATE.subject(*incoming.names)
                held.pop(subject, None)
                if isinstance(incoming.message, ObjectObserved):
                    held[subject] = incoming.data
            # What cannot be read is no tombstone: it is to be replaced.
            held.update((refused.subject, b"") for refused in batch.refused)
            self._sequence = max(self._sequence, batch.last_sequence)
        self._outbox.begin(held)
        log.info("state.compared", on_bus=len(held), differing=len(self._outbox))

    async def _publish_some(self, stop: asyncio.Event) -> None:
        """Publish a batch, and note its sequence."""
        event = "state.delayed"
        sent = await send_due(self._bus, self._outbox, _address_state, stop, event)
        if sent is not None:
            self._sequence = max(self._sequence, sent.sequence)
            self.counts["sent"] += sent.messages


def _address_state(subject: str, data: bytes | None) -> Outgoing:
    if data is None:
        cluster, kind, key = STATE.names_of(subject)
        gone = ObjectGone(cluster=ClusterName(cluster), kind=kind, key=key)
        return Outgoing.of(STATE, gone)
    return Outgoing(subject=subject, data=data, zstd=STATE.zstd)
