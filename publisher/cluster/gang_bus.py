"""What is said of gangs on the bus: read into their records, and said by us.

Four streams, and what gangs avoid; nothing may be decided before all were read to where
they stood at the start. Gangs that were over by then, of which no pod is left, are
passed over: what is kept follows what lives. Knows no Kubernetes object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from time import monotonic
from typing import Any

from msgspec import structs

from contracts.avoidance import NodesAvoided
from contracts.ids import ClusterName, GangKey, GangUID, Namespace
from contracts.messages import (
    AllocationWritten,
    CancelGang,
    CommandMessage,
    ConfirmationMessage,
    GangAllocated,
    GatesOpened,
    ReleaseGang,
    SubmitGang,
)
from contracts.topics import (
    AVOIDANCES,
    COMMANDS,
    CONFIRMATIONS,
    DECISIONS,
    GANG_TOPICS,
    SUBMISSIONS,
    Topic,
)
from publisher.cluster.past_confirmations import PastConfirmations
from publisher.cluster.said_avoidances import SaidAvoidances
from publisher.gangs.context import PublisherMessage
from publisher.gangs.records import PodGangRecord, PodGangRecords
from publisher.gangs.view import GroupKey
from runtime.bus.bus import Bus
from runtime.bus.reader import CaughtUp
from runtime.errors import PublishRefusedError
from runtime.refusals import Refusals
from runtime.run import Task
from runtime.tracing import TRACEPARENT, GangTraces
from runtime.waits import first_of
from runtime.wire import Outgoing, TopicBatch

GangWord = SubmitGang | CommandMessage | ConfirmationMessage
"""What a publisher says of the life of one gang."""
_SPANS: dict[type, str] = {
    SubmitGang: "submit",
    AllocationWritten: "write",
    GatesOpened: "open gates",
}
"""What was done before it is said, as its trace calls it."""


class GangBus:
    """Records of gangs as the bus has them, and the way to publish about a gang."""

    def __init__(
        self,
        cluster: ClusterName,
        bus: Bus,
        changed: Callable[[Iterable[GroupKey]], Awaitable[None]],
        shown: Callable[[], Iterable[GroupKey]],
        traces: GangTraces | None = None,
    ) -> None:
        """`shown` names the groups that the cluster has, once it has been read."""
        self._cluster = cluster
        self._bus = bus
        self._records = PodGangRecords()
        self._traces = traces or GangTraces()
        self._changed = changed
        self._avoided = SaidAvoidances()
        self._refusals = Refusals()
        self._caught_up = CaughtUp((*GANG_TOPICS, AVOIDANCES))
        self._past = PastConfirmations(cluster, shown)
        self._confirmed = CaughtUp((CONFIRMATIONS,))
        self._decided = CaughtUp((DECISIONS,))

    def tasks(self, cluster_read: asyncio.Event) -> dict[str, Task]:
        """Name what runs for as long as the service does.

        Reading begins once the cluster has been read: it says whose pods are left.
        Confirmations come first, then decisions: they say what is over.
        """
        after: dict[Topic[Any], asyncio.Event] = {
            CONFIRMATIONS: cluster_read,
            DECISIONS: self._confirmed.event,
            SUBMISSIONS: self._decided.event,
            COMMANDS: self._decided.event,
        }
        tasks = {
            f"gangs-{topic.entity}": self._follow_topic(topic, begin)
            for topic, begin in after.items()
        }
        return {**tasks, f"gangs-{AVOIDANCES.entity}": self._follow_avoidances}

    @property
    def synced(self) -> asyncio.Event:
        """Set once everything was read that was there at the start."""
        return self._caught_up.event

    def _follow_topic(self, topic: Topic[Any], after: asyncio.Event) -> Task:
        # Commands from the first one kept: our own may hide another's.
        skips = self._past.skips if topic in (SUBMISSIONS, COMMANDS) else None

        async def follow(stop: asyncio.Event) -> None:
            await first_of(after, stop)
            batches = self._bus.read(topic, self._cluster, stop=stop, skips=skips)
            async for batch in batches:
                await self._changed(self._apply_batch(batch))
                self._note_progress(topic, batch)

        return follow

    def _note_progress(self, topic: Topic[Any], batch: TopicBatch[Any]) -> None:
        """Take note of how far a topic was read."""
        was_decided = bool(self._decided)
        for read in (self._confirmed, self._decided, self._caught_up):
            read.note(topic, batch)
        if self._decided and not was_decided:
            is_known = self._records.is_known
            for message, sequence in self._past.end_decisions(is_known):
                self._records.apply(message, sequence)
        if self._caught_up:
            self._past.close()

    def _apply_batch(self, batch: TopicBatch[Any]) -> set[GroupKey]:
        """Take messages in; returns the groups concerned, as far as they are known."""
        groups = set()
        for incoming in batch.messages:
            if incoming.message is None:
                continue
            with self._refusals.guard(incoming):
                if isinstance(incoming.message, GangAllocated):
                    self._traces.follow(incoming.message.key, incoming.traceparent)
                for message, sequence in self._past.take(
                    incoming.message, incoming.sequence
                ):
                    group = self._records.apply(message, sequence, incoming.time_s)
                    if group is not None:
                        groups.add(group)
        return groups

    async def _follow_avoidances(self, stop: asyncio.Event) -> None:
        # A stream made anew loses nothing that matters: a node may be tried again.
        batches = self._bus.read(
            AVOIDANCES, self._cluster, stop=stop, survives_restart=True
        )
        async for batch in batches:
            for incoming in batch.messages:
                with self._refusals.guard(incoming):
                    self._avoided.note(incoming.names, incoming.message, monotonic())
            self._caught_up.note(AVOIDANCES, batch)

    def avoided(self, namespace: str, name: str) -> NodesAvoided | None:
        """Return which nodes a gang avoids, as last published."""
        return self._avoided.get((self._cluster, namespace, name), monotonic())

    def groups(self) -> Iterator[GroupKey]:
        """Go through the groups that messages are about."""
        return self._records.groups()

    def finished_groups(self) -> Iterator[GroupKey]:
        """Go through those with a gang for which nothing is held any longer."""
        return self._records.finished_groups()

    def find(self, key: GangKey) -> PodGangRecord | None:
        """Return what is known of a gang; None: nothing."""
        return self._records.get(key)

    def of_group(self, group: GroupKey) -> tuple[PodGangRecord, ...]:
        """Return what was submitted for a group."""
        return self._records.of_group(group)

    def forgotten(self, namespace: str, uid: GangUID) -> bool | None:
        """True if a forgotten gang's pods are asked for again; None: it is kept."""
        return self._records.forgotten(GangKey(Namespace(namespace), uid))

    def forget(self, namespace: str, uids: Iterable[GangUID]) -> None:
        """Drop gangs of a namespace of which nothing is left."""
        self._records.forget(GangKey(Namespace(namespace), uid) for uid in uids)

    async def say(
        self, message: PublisherMessage, records: Iterable[PodGangRecord]
    ) -> None:
        """Publish a message and apply it at once.

        It was planned from these records: a confirmation is only the next one if
        nobody has confirmed anything since.

        Raises:
            BusError: it could not be stored.
            ContractsError: what was confirmed before cannot be read.
        """
        if isinstance(message, NodesAvoided):
            await self._bus.publish(Outgoing.of(AVOIDANCES, message))
            self._avoided.note(message.address, message, monotonic())
            return
        expected = None
        if isinstance(message, ConfirmationMessage):
            confirmed = (
                r.confirmation_sequence for r in records if r.uid == message.uid
            )
            expected = next(confirmed, 0)
        outgoing = self._trace_message(message, _address_message(message, expected))
        try:
            sequence = await self._bus.publish(outgoing)
        except PublishRefusedError as error:
            if error.kind == "stale":
                await self._read_again(message)
                return
            # Written once: another publisher submitted the same pods before us.
            if error.kind != "exists":
                raise
            sequence = 0
        self._records.apply(message, sequence)

    def _trace_message(self, message: GangWord, outgoing: Outgoing) -> Outgoing:
        """Begin or continue a gang's trace with a message."""
        span = _SPANS.get(type(message))
        if span is None or not self._traces.is_on:
            return outgoing
        since_s = self._traces.since_s(message.key)
        headers = self._traces.record(message.key, span, since_s)
        self._traces.follow(message.key, headers[TRACEPARENT])
        return structs.replace(outgoing, headers={**outgoing.headers, **headers})

    async def _read_again(self, message: GangWord) -> None:
        """Apply what is confirmed of a gang: somebody was faster, or all was lost.

        Raises:
            ContractsError: it cannot be read, so nothing can be said after it.
        """
        last = await self._bus.read_last(CONFIRMATIONS, *message.address)
        if last is None:
            self._records.correct(message.key, None, 0)
        else:
            self._records.correct(message.key, last.message, last.sequence)


def _address_message(message: GangWord, expected: int | None) -> Outgoing:
    """Address a message; `expected` is the last sequence of its subject, if known."""
    match message:
        case SubmitGang():
            return Outgoing.of(SUBMISSIONS, message)
        case CancelGang() | ReleaseGang():
            return Outgoing.of(COMMANDS, message)
        case _:
            return Outgoing.of(
                CONFIRMATIONS, message, expected_last_subject_sequence=expected
            )
