"""Tells the bus what the book says is due, and that the nodes are alive.

Three tasks that share one book: look at the devices, send what changed, show that the
nodes are here. Looking never waits for the bus. What the bus did not acknowledge is due
again, and after a reconnect everything is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from contracts import messages, subjects
from contracts.ids import ClusterName, NodeName
from contracts.messages import NodeSeen
from nodeagent.agent_state import AGAIN, DEVICES, Book, Due
from nodeagent.errors import SourceError
from nodeagent.health import HealthChange, Moment
from nodeagent.restore import recall
from nodeagent.schedule import phase_of, turns
from nodeagent.sources.source import DeviceSource
from runtime.bus.bus import Bus, Outgoing
from runtime.errors import BusError, StreamDiffersError
from runtime.log import get_logger
from runtime.waits import first_of

log = get_logger(__name__)

STREAMS = tuple(
    stream for stream in subjects.STREAMS if stream.name in {"INV", "HEALTH", "HB"}
)
_CHUNK_NODES = 64
_HEARTBEAT_SLOTS = 20
_RETRY_S = 1.0


class Pace(Struct, frozen=True, kw_only=True):
    """How often what is done."""

    read_s: float = 0.25
    heartbeat_s: float = 5.0
    heartbeat_ttl_s: int = 20
    repeat_s: float = 600.0
    spread_s: float = 1.0
    """Up to so long after a reconnect everything is said again, by the agent's name."""
    create_streams: bool = True


class Announcer:
    """Speaks on the bus for the nodes of one source."""

    def __init__(
        self,
        bus: Bus,
        source: DeviceSource,
        book: Book,
        cluster: ClusterName,
        *,
        pace: Pace,
        incarnation: str,
        clock: Callable[[], Moment],
    ) -> None:
        self._bus = bus
        self._source = source
        self._book = book
        self._cluster = cluster
        self._pace = pace
        self._incarnation = incarnation
        self._clock = clock
        self._phase = phase_of(f"{cluster}/{source.nodes[0]}")
        self._away: frozenset[NodeName] = frozenset()
        self._wake = asyncio.Event()
        self._greeted: int | None = None
        """The connection on which everything was recalled or made due."""
        self._undiscovered: set[NodeName] = set()

    async def watch_devices(self, stop: asyncio.Event) -> None:
        """Look at all devices, over and over, and judge what is seen."""
        while not stop.is_set():
            now = self._clock()
            try:
                readings = await self._source.read(now.monotonic_s)
            except SourceError as error:
                log.warning("devices.unreadable", reason=error.reason)
                self._note(self._book.silence(now, error.reason))
            else:
                self._away = readings.away
                for node in readings.changed:
                    self._book.make_due(node, DEVICES)
                    self._wake.set()
                self._note(self._book.look(readings.symptoms, now))
            await first_of(stop, within_s=self._pace.read_s)

    def _note(self, changes: tuple[HealthChange, ...]) -> None:
        for change in changes:
            self._wake.set()
            log.info(
                "device.judged",
                device=str(change.device),
                before=change.before.value,
                after=change.after.value,
                message=change.message,
            )

    async def publish_changes(self, stop: asyncio.Event) -> None:
        """Send what is due; everything again after each reconnect and now and then.

        Raises:
            StreamDiffersError: trying again does not help, a person must look.
        """
        repeated_s = self._clock().monotonic_s
        while not stop.is_set():
            if self._bus.connected:
                repeated_s = self._make_repeats_due(repeated_s)
                try:
                    await self._greet(stop)
                    await self._send_due(stop)
                except StreamDiffersError:
                    raise
                except BusError as error:
                    log.warning("announcement.failed", reason=str(error))
                    await first_of(stop, within_s=_RETRY_S)
            await first_of(stop, self._wake, within_s=self._pace.read_s)
            self._wake.clear()

    def _make_repeats_due(self, since_s: float) -> float:
        now_s = self._clock().monotonic_s
        nodes = self._source.nodes
        for index in turns(
            len(nodes), self._pace.repeat_s, self._phase, since_s, now_s
        ):
            self._book.make_due(nodes[index], AGAIN)
        return now_s

    async def _greet(self, stop: asyncio.Event) -> None:
        """Once a connection: see to the streams, recall or say everything again."""
        connection = self._bus.connection
        if connection == self._greeted:
            return
        if self._pace.create_streams:
            await self._bus.ensure_streams(STREAMS)
        if self._greeted is None:
            await recall(self._bus, self._book, self._cluster, self._source.nodes, stop)
        else:
            self._greeted = connection
            await first_of(stop, within_s=self._phase * self._pace.spread_s)
            self._book.make_all_due(AGAIN)
            log.info("announcements.repeated", node_count=self._book.due_count)
        self._greeted = connection

    async def _send_due(self, stop: asyncio.Event) -> None:
        nodes = news = 0
        undiscovered: set[NodeName] = set()
        while self._book.due_count and not stop.is_set():
            taken = self._book.take_due(_CHUNK_NODES)
            outgoing: list[Outgoing] = []
            for node, due in taken.items():
                try:
                    found, is_news = await self._messages(node, due)
                except SourceError as error:
                    self._warn_once(node, error)
                    undiscovered.add(node)
                else:
                    outgoing.extend(found)
                    news += is_news
            try:
                await self._bus.publish_many(outgoing)
            except BusError:
                for node in (*taken, *undiscovered):
                    self._book.make_due(node, AGAIN)
                raise
            nodes += len(taken)
        for node in undiscovered:
            self._book.make_due(node, AGAIN)
        self._undiscovered &= undiscovered
        if news:
            log.info("nodes.announced", node_count=nodes, changed_count=news)

    def _warn_once(self, node: NodeName, error: SourceError) -> None:
        if node not in self._undiscovered:
            self._undiscovered.add(node)
            log.warning("devices.undiscovered", node=node, reason=error.reason)

    async def _messages(self, node: NodeName, due: Due) -> tuple[list[Outgoing], bool]:
        """Give what is to be sent about a node, and whether any of it is new."""
        found: list[Outgoing] = []
        news = False
        if due.inventory:
            devices = await self._source.discover(node)
            inventory = self._book.next_inventory(devices, due)
            if inventory is not None:
                subject = subjects.inventory(self._cluster, node)
                data = messages.INVENTORY.encode(inventory.message)
                found.append(Outgoing(subject=subject, data=data, zstd=True))
                news = inventory.news
        health = self._book.next_health(node, due)
        if health is not None:
            subject = subjects.health(self._cluster, node)
            data = messages.HEALTH.encode(health.message)
            found.append(Outgoing(subject=subject, data=data))
            news = news or health.news
        return found, news

    async def publish_heartbeats(self, stop: asyncio.Event) -> None:
        """Show that the nodes are alive, their beats spread over the interval."""
        nodes, interval_s = self._source.nodes, self._pace.heartbeat_s
        beaten_s = self._clock().monotonic_s - interval_s
        while not stop.is_set():
            now_s = self._clock().monotonic_s
            if self._bus.connected and self._greeted == self._bus.connection:
                indices = turns(len(nodes), interval_s, self._phase, beaten_s, now_s)
                beaten_s = now_s
                await self._beat([nodes[index] for index in indices])
            await first_of(stop, within_s=interval_s / _HEARTBEAT_SLOTS)

    async def _beat(self, nodes: list[NodeName]) -> None:
        outgoing = [
            Outgoing(
                subject=subjects.heartbeat(self._cluster, node),
                data=messages.HEARTBEAT.encode(
                    NodeSeen(
                        cluster=self._cluster, node=node, incarnation=self._incarnation
                    )
                ),
                ttl_s=self._pace.heartbeat_ttl_s,
            )
            for node in nodes
            if node not in self._away
        ]
        try:
            await self._bus.publish_many(outgoing)
        except BusError as error:
            log.warning("heartbeats.failed", reason=str(error))
