"""The solver as a process: messages in, decisions out, and who may send them.

Every instance follows all streams and keeps its Snapshot warm; only the leader
decides. The service starts to decide once it has read everything that was on the bus
when it began, and each time it takes the lead, once it has read up to that point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic, perf_counter, time
from typing import Any

from contracts import topics
from contracts.announcing import limit_drivers
from contracts.ids import DriverName, GangKey, NodeName
from contracts.lifecycle import GangRecord, LifecycleMessage
from contracts.messages import (
    AllocationLost,
    AllocationRefused,
    DecisionMessage,
    DevicesAnnounced,
)
from contracts.topics import Topic
from runtime.bus.bus import Bus
from runtime.bus.reader import CaughtUp
from runtime.errors import BusUnavailableError, PublishRefusedError, ServiceError
from runtime.log import get_logger
from runtime.past_gangs import PastGangs
from runtime.refusals import Refusals
from runtime.run import Task
from runtime.waits import first_of, together
from runtime.wire import Incoming, TopicBatch
from solver.queueing.aging import list_aged
from solver.queueing.gang_queue import GangQueue
from solver.service.attempts import Attempts
from solver.service.backlog import Backlog
from solver.service.batches import Batches
from solver.service.config import SolverConfig
from solver.service.decide import Changes, Decider
from solver.service.deferred import DeferredConfirmations
from solver.service.endings import Endings
from solver.service.intake import snapshot_message
from solver.service.lacking import LackingNodes
from solver.service.lead import Leadership
from solver.service.ledger import Ledger
from solver.service.notices import Notices
from solver.service.paced import PACED_TOPICS, PacedReader
from solver.service.past import passes_over
from solver.service.presence import Presence
from solver.service.reserving import LOOK_S, Reserving
from solver.service.retention import Retention
from solver.service.telemetry import Telemetry
from solver.snapshot.snapshot import (
    GangForgotten,
    NodePresence,
    Snapshot,
    SnapshotMessage,
    apply,
)

log = get_logger(__name__)
NODE_TOPICS: tuple[Topic[Any], ...] = (
    topics.INVENTORIES,
    topics.HEALTH,
    topics.HEARTBEATS,
    topics.STATE,
)
"""What their senders say again when a stream is made anew."""
REST_S = 0.1
"""How long a gang rests after its first decision came back; doubled each time."""
MAX_REST_S = 60.0
AGING_S = 5.0
"""Between two looks at how old gangs are."""
UNKNOWN_S = 600.0
"""How long a gang is kept of which no submission was read, at least."""


class SolverService:
    """What the process knows and does."""

    def __init__(
        self,
        config: SolverConfig,
        bus: Bus,
        decider: Decider,
        ledger: Ledger,
        leadership: Leadership,
        *,
        telemetry: Telemetry,
    ) -> None:
        self._config = config
        self._bus = bus
        self._decider = decider
        self._ledger = ledger
        self._leadership = leadership
        self._telemetry = telemetry
        self._snapshot = Snapshot()
        self._queue = GangQueue(config.read_gang_quotas())
        self._notices = Notices(config.cluster, self._queue)
        telemetry.follow_queue(self._queue)
        self._presence = Presence(config.heartbeat_grace_s, monotonic())
        self._caught_up = CaughtUp((*NODE_TOPICS, *topics.GANG_TOPICS))
        self._read_up_to: dict[str, int] = {}
        """The last sequence that was read of each topic, by entity."""
        self._decisions_read = asyncio.Event()
        self._past = PastGangs()
        self._worker_warm = False
        self._decided_last = asyncio.Event()
        """Set when no more batches are begun."""
        self._deferred = DeferredConfirmations()
        self._refusals = Refusals()
        self._paced = PacedReader(bus, self._refusals, self._take)
        self._agent_drivers = frozenset(map(DriverName, config.agent_drivers))
        self._fence = topics.FENCE.subject(config.cluster)
        self._endings = Endings(
            config.cluster, leadership, self._refusals, self._past.has
        )
        self._reserving = Reserving(
            config, decider, lambda: self._snapshot, self._queue.retry
        )
        self._lacking = LackingNodes(
            decider,
            self._reserving,
            lambda: self._snapshot,
            lambda: self._queue.lined_up,
        )
        attempts = Attempts(
            decider,
            self._refusals,
            reserving=self._reserving,
            guard_s=config.guard_s,
            snapshot=lambda: self._snapshot,
            believe=self._apply,
            rest=self._rest,
        )
        self._batches = Batches(
            config,
            self._queue,
            decider,
            attempts,
            lambda: self._snapshot,
            reserving=self._reserving,
            work=telemetry.work,
        )
        self._unknown: frozenset[GangKey] = frozenset()
        """Gangs without a submission when this was last looked at."""
        self._wake = asyncio.Event()
        self._unfinished = True
        """True if a former leader may have left open solves."""

    def is_ready(self) -> bool:
        """True if we could lead at once: all was read, by the worker too."""
        return self._ready and self._worker_warm

    def tasks(self) -> dict[str, Task]:
        """Name every task of the service; all run until it stops."""
        telemetry = self._telemetry
        retention = Retention(
            self._bus,
            self._config.cluster,
            self._config.retention_s,
            leads=lambda: self._leadership.leads,
            lives=self._lives,
        )
        backlog = Backlog(
            self._bus,
            self._config.cluster,
            leads=lambda: self._leadership.leads,
            snapshot=lambda: self._snapshot,
            believe=self._believe_late,
            read_up_to=lambda topic: self._read_up_to.get(topic.entity, 0),
            unsaid=self._endings.aside,
        )
        return {
            # What is known, read by every instance, so that one that begins to lead
            # knows it already: follow-inv, follow-dec, ...
            **{
                f"follow-{topic.entity}": self._follower(topic)
                for topic in (*NODE_TOPICS, *topics.GANG_TOPICS)
            },
            # Holds the epoch, or waits until its holder is gone.
            "lead": self.lead,
            # Nodes whose agent fell silent lose their devices as candidates.
            "presence": self.presence,
            # The last message of nodes that say something new too often.
            "paced": self._paced.run,
            # Gangs that have waited for long gain priority where their queue says so.
            "age": self.age,
            # Gangs of which a late message told, and no submission ever comes.
            "forget": self.forget,
            # Gangs that ended long ago leave the streams, while we lead.
            "retention": retention.run,
            # Commands that come faster than they are read, while we lead.
            "backlog": backlog.run,
            # Whatever waits, batch by batch, while we lead.
            "decide": self.decide,
            # What is kept for whom waits for long, while we lead.
            "reserve": self.reserve,
            # Which nodes are lacked by whom, while we lead and nothing else is to do.
            "lack": self.lack,
            # Selectors that take long, beside the decisions.
            "evaluate": self.evaluate,
            # The cluster as metrics, while we lead.
            "census": lambda stop: telemetry.run(stop, lambda: self._snapshot),
        }

    # --- messages in ---------------------------------------------------------------

    def _follower(self, topic: Topic[Any]) -> Task:
        # The fence is read in one with the decisions: it says how far they go.
        read = (topic, topics.FENCE) if topic is topics.DECISIONS else (topic,)
        # What is over by its decision needs not be read at all.
        waits = topic in topics.GANG_TOPICS and topic is not topics.DECISIONS
        skips = self._past.skips if waits else None
        if topic in PACED_TOPICS:
            skips = self._paced.skips

        async def follow(stop: asyncio.Event) -> None:
            if waits:
                await first_of(self._decisions_read, stop)
            async for batch in self._bus.read_all(
                read,
                self._config.cluster,
                stop=stop,
                refusals=self._refusals,
                survives_restart=topic in NODE_TOPICS,
                skips=skips,
            ):
                self._take(topic, batch)
                self._read_up_to[topic.entity] = batch.read_up_to
                self._caught_up.note(topic, batch)
                if topic is topics.DECISIONS and batch.caught_up:
                    self._decisions_read.set()
                if self._caught_up:
                    self._past.close()

        return follow

    def _take(self, topic: Topic[Any], batch: TopicBatch[Any]) -> None:
        """Apply a batch to the Snapshot, and remember what must be answered."""
        began_s = perf_counter()
        refused = list(batch.refused)
        for incoming in batch.messages:
            with self._refusals.guard(incoming) as guarded:
                self._take_one(incoming)
            if guarded.refused is not None:
                refused.append(guarded.refused)
        for item in refused:
            if topic is topics.SUBMISSIONS:
                self._endings.note_refused(item)
            elif item.subject == self._fence:
                self._leadership.note_fence(item)
        if topic is topics.STATE and batch.last_sequence:
            for opened, sequence in self._deferred.release(batch.last_sequence):
                with self._refusals.guard(topics.CONFIRMATIONS.subject_of(opened)):
                    self._believe(opened, sequence)
        self._wake_gangs()
        self._telemetry.note_taken_in(len(batch.messages), began_s)
        if batch.last_sequence:
            self._wake.set()

    def _take_one(self, incoming: Incoming[Any]) -> None:
        if incoming.topic is topics.HEARTBEATS:
            if incoming.message is not None:
                self._presence.note_heartbeat(NodeName(incoming.names[1]), monotonic())
        elif incoming.topic is topics.FENCE:
            self._leadership.note_fence(incoming)
        else:
            self._apply_incoming(incoming)

    def _apply_incoming(self, incoming: Incoming[Any]) -> None:
        message = snapshot_message(incoming)
        if message is None or self._is_past(message):
            return
        if isinstance(message, DevicesAnnounced):
            message, refused = limit_drivers(message, self._agent_drivers)
            self._refusals.note_parts(incoming, refused)
        self._telemetry.note(incoming, is_news=self._ready)
        if not self._deferred.defer(message, incoming.sequence):
            self._believe(message, incoming.sequence, incoming.time_s)
        if isinstance(message, AllocationRefused | AllocationLost):
            pause = min(REST_S * 2 ** min(message.attempt, 16), MAX_REST_S)
            self._queue.rest(message.key, monotonic() + pause)

    def _is_past(self, message: SnapshotMessage) -> bool:
        """True if a message is about a gang that was over before we began."""
        return isinstance(message, LifecycleMessage) and passes_over(
            self._past, message, is_known=message.key in self._snapshot.gangs
        )

    def _lives(self, ended: DecisionMessage) -> bool:
        """True if a gang that was over is known to live again."""
        record = self._snapshot.gangs.get(ended.key)
        return record is not None and not record.is_over

    def _believe(
        self, message: SnapshotMessage, sequence: int = 0, time_s: float = 0.0
    ) -> None:
        """Let the Snapshot and the queue follow a message."""
        self._snapshot = apply(
            self._snapshot, message, sequence=sequence, time_s=time_s or time()
        )
        if isinstance(message, LifecycleMessage):
            record = self._snapshot.gangs.get(message.key)
            if record is not None:
                self._queue.follow(record)
                self._notices.follow(record, monotonic())
                if not record.wants_decision:
                    self._telemetry.note_gone(record.key)

    def _believe_late(self, message: SnapshotMessage, sequence: int) -> None:
        """Take in what was looked up, ahead of what is read."""
        self._believe(message, sequence)
        self._wake.set()

    def _wake_gangs(self) -> None:
        """Let gangs be tried again that may profit from what grew."""
        self._queue.wake(self._snapshot, self._snapshot.grown)
        self._snapshot = self._snapshot.without_grown()

    def _sizes(self) -> dict[str, int]:
        inventory = self._snapshot.inventory
        return {
            "nodes": len(inventory.nodes),
            "pools": len(inventory.pool_nodes),
            "gangs": len(self._snapshot.gangs),
        }

    # --- who leads, who is away ------------------------------------------------------

    @property
    def _ready(self) -> bool:
        return bool(self._caught_up)

    async def lead(self, stop: asyncio.Event) -> None:
        """Hold the epoch, or wait for it; pages are stored before the first claim."""
        while not stop.is_set():
            if self._ready:
                try:
                    await self._tend()
                except BusUnavailableError as error:
                    log.warning("lease.unsure", reason=str(error))
            await self._leadership.wait_handed_over(stop)
        await self._leadership.resign(self._decided_last)

    async def _tend(self) -> None:
        # Who was ready a moment ago claims at once: nobody else decides meanwhile.
        claims = self._worker_warm and self._leadership.is_free
        if not (self._leadership.leads or claims):
            pages = tuple(self._snapshot.inventory.pages)
            stored = self._ledger.store_pages(pages)
            await together([self._decider.warm(self._snapshot), stored])
            self._worker_warm = True
        if await self._leadership.tend():
            self._unfinished = True
            self._reserving.begin()
            self._lacking.begin()
            log.info("epoch.claimed", epoch=self._leadership.epoch, **self._sizes())
            self._wake.set()

    async def presence(self, stop: asyncio.Event) -> None:
        """Notice nodes that fall silent, and those that come back."""
        while not stop.is_set():
            now = monotonic()
            self._presence.note_connection(
                self._bus.connection, now, stands=self._bus.connected
            )
            if self._ready:
                self._judge_presence(now)
            await first_of(stop, within_s=1.0)

    async def forget(self, stop: asyncio.Event) -> None:
        """Forget gangs of which late messages told, and no submission for long."""
        while not stop.is_set():
            await first_of(stop, within_s=UNKNOWN_S)
            unknown = frozenset(self._snapshot.unknown)
            for gang in unknown & self._unknown:
                self._believe(GangForgotten(gang=gang))
            self._unknown = unknown

    async def age(self, stop: asyncio.Event) -> None:
        """Note which gangs have gained priority by their age."""
        while not stop.is_set():
            if self._ready:
                # Many may wait: they are looked at beside the loop.
                aged = await asyncio.to_thread(list_aged, self._snapshot, time())
                for message in aged:
                    self._believe(message)
                    record = self._snapshot.waiting.get(message.gang)
                    if record is not None:
                        self._queue.note_age(record)
                if aged:
                    self._reserving.follow_ages()
                    self._wake.set()
            await first_of(stop, within_s=AGING_S)

    def _judge_presence(self, now: float) -> None:
        nodes = self._snapshot.inventory.nodes
        away_by_node = {
            name: state.away for name, state in nodes.items() if state.announced
        }
        changed = self._presence.judge(away_by_node, now)
        for node, away in changed:
            self._believe(NodePresence(node=node, away=away))
            log.warning("node.lost" if away else "node.returned", node=node)
        if changed:
            self._wake.set()

    # --- decisions out ---------------------------------------------------------------

    async def decide(self, stop: asyncio.Event) -> None:
        """Decide whatever waits, for as long as we lead."""
        while not stop.is_set():
            self._wake.clear()
            try:
                worked = self._leadership.leads and await self._step()
            except PublishRefusedError as error:
                event = "epoch.lost" if error.kind == "stale" else "decision.refused"
                log.warning(event, reason=str(error))
                worked = False
            except BusUnavailableError as error:
                log.warning("decision.delayed", reason=str(error))
                worked = False
            except ServiceError:
                raise
            except Exception as error:  # noqa: BLE001 # whoever can be decided, will be
                log.error("decision.failed", reason=str(error))  # noqa: TRY400 # shown once
                self._refusals.show_mistake("decide", error)
                worked = False
            if not worked:
                await first_of(self._wake, stop, within_s=1.0)
        self._decided_last.set()

    async def reserve(self, stop: asyncio.Event) -> None:
        """Look at reservations now and then, for as long as we lead."""
        await self._look_on(stop, "reserve", self._reserving.look)

    async def lack(self, stop: asyncio.Event) -> None:
        """Look at what gangs lack now and then, for as long as we lead."""
        await self._look_on(stop, "lack", self._lacking.look)

    async def _look_on(
        self, stop: asyncio.Event, what: str, look: Callable[[], Awaitable[float]]
    ) -> None:
        """Look at something again and again, after the pause that each look gives."""
        while not stop.is_set():
            pause_s = 1.0
            if self._leadership.leads and self._leadership.caught_up:
                try:
                    pause_s = await look()
                except BusUnavailableError as error:
                    log.warning("look.delayed", look=what, reason=str(error))
                except ServiceError:
                    raise
                except Exception as error:  # noqa: BLE001 # others are decided all the same
                    log.error("look.failed", look=what, reason=str(error))  # noqa: TRY400 # shown once
                    self._refusals.show_mistake(what, error)
                    pause_s = LOOK_S
                self._wake.set()
            await first_of(stop, within_s=pause_s)

    async def evaluate(self, stop: asyncio.Event) -> None:
        """Evaluate slow selectors; gangs that waited for them are tried next."""

        def try_again(gangs: Iterable[GangKey]) -> None:
            self._queue.retry(gangs)
            self._wake.set()

        await self._decider.evaluate(stop, try_again)

    async def _step(self) -> bool:
        """Do the next thing; False: there is nothing to do."""
        self._leadership.begin()
        if not self._leadership.caught_up:
            return False
        if self._unfinished:
            self._unfinished = False
            await self._finish()
            return True
        epoch = self._leadership.epoch
        notices = self._notices.make(self._snapshot, monotonic(), epoch)
        promises = self._reserving.make_promises(self._snapshot, epoch)
        goes = self._reserving.make_preemptions(self._snapshot, epoch)
        told = {word.key for word in (*goes, *notices, *promises)}
        lacks = self._lacking.make_news(self._snapshot, epoch, told)
        words: tuple[DecisionMessage, ...] = (*goes, *notices, *promises, *lacks)
        said = await self._endings.publish(self._snapshot, words)
        self._apply([*said])
        self._wake_gangs()
        # However many gangs end: after some of them others are decided.
        # What was promised is kept from the first batch on.
        decided = self._reserving.is_known and await self._batches.decide_next()
        return decided or bool(said)

    async def _finish(self) -> None:
        """Answer what a former leader left open, where that can be read."""
        opened = await self._ledger.last_open()
        if opened is not None:
            with self._refusals.guard(topics.SOLVES.subject_of(opened)):
                self._apply(await self._decider.finish(self._snapshot, opened))

    def _apply(self, changes: Changes) -> None:
        for message, sequence in changes:
            self._believe(message, sequence)

    def _rest(self, record: GangRecord, until: float) -> None:
        self._queue.rest(record.key, until)
