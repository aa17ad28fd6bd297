"""Sends the bus what changed on the nodes, and that they are alive.

Four tasks share one AgentState: read the devices, send what is dirty, send heartbeats,
and look whether the bus still has what was sent. Reading never waits for the bus. What
the bus did not acknowledge is dirty again; after a reconnect, or once the bus has lost
anything, everything is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import cycle

from msgspec import Struct

from contracts.errors import ContractsError
from contracts.ids import ClusterName, NodeName
from contracts.messages import DevicesAnnounced, NodeSeen
from contracts.streams import STREAMS
from contracts.topics import DRIFT, HEALTH, HEARTBEATS, INVENTORIES
from nodeagent.agent_state import DEVICES, RESEND, AgentState, Dirty
from nodeagent.errors import SourceError
from nodeagent.fence import is_newer
from nodeagent.health import HealthChange, HealthStatus, Moment
from nodeagent.metrics import ANNOUNCED
from nodeagent.metrics import DEVICES as DEVICES_BY_HEALTH
from nodeagent.restore import Restorer
from nodeagent.schedule import list_due, phase_of
from nodeagent.sources.source import DeviceSource
from runtime.bus.bus import Bus
from runtime.errors import BusError, MessageError, StreamDiffersError
from runtime.log import get_logger
from runtime.waits import first_of
from runtime.wire import Outgoing

log = get_logger(__name__)

_TOPICS = (INVENTORIES, HEALTH, DRIFT, HEARTBEATS)
_OWN_STREAMS = tuple(
    stream for stream in STREAMS if stream.name in {topic.stream for topic in _TOPICS}
)
_CHUNK_NODES = 128
_HEARTBEAT_SLOTS = 20
_RETRY_S = 1.0
_COUNT_S = 5.0


class AnnouncerSettings(Struct, frozen=True, kw_only=True):
    """How often the announcer does what."""

    read_s: float = 0.25
    heartbeat_s: float = 5.0
    repeat_s: float = 600.0
    verify_s: float = 30.0
    spread_s: float = 1.0
    """After a reconnect everything is sent again within this time, by agent's name."""
    create_streams: bool = True


class Announcer:
    """Announces the nodes of one source on the bus."""

    def __init__(
        self,
        bus: Bus,
        source: DeviceSource,
        state: AgentState,
        cluster: ClusterName,
        *,
        settings: AnnouncerSettings,
        incarnation: str,
        clock: Callable[[], Moment],
        recall: Callable[[DevicesAnnounced], None] | None = None,
    ) -> None:
        """Announce a source; `recall` tells it what was announced before."""
        self._bus = bus
        self._source = source
        self._state = state
        self._cluster = cluster
        self._settings = settings
        self._incarnation = incarnation
        self._clock = clock
        self._restorer = Restorer(bus, state, cluster, source.nodes, recall)
        self._phase = phase_of(f"{cluster}/{source.nodes[0]}")
        self._away: frozenset[NodeName] = frozenset()
        self._has_voice = True
        """True if no newer agent serves our node."""
        self._wake = asyncio.Event()
        self._synced_connection: int | None = None
        """The connection since which everything was, or will be, said."""
        self._undiscovered: set[NodeName] = set()
        self.has_announced = False
        """True if every node that its source could list was announced once."""

    async def watch_devices(self, stop: asyncio.Event) -> None:
        """Read all devices, over and over, and judge the readings."""
        while not stop.is_set():
            now = self._clock()
            try:
                readings = await self._source.read(now.monotonic_s)
            except SourceError as error:
                log.warning("devices.unreadable", reason=error.reason)
                self._report_changes(self._state.judge_silence(now, error.reason))
            else:
                self._away = readings.away
                for node in readings.changed:
                    self._state.mark_dirty(node, DEVICES)
                    self._wake.set()
                self._report_changes(
                    self._state.judge_readings(readings.symptoms, now, readings.unread)
                )
            await first_of(stop, within_s=self._settings.read_s)

    def _report_changes(self, changes: tuple[HealthChange, ...]) -> None:
        for change in changes:
            self._wake.set()
            log.info(
                "device.judged",
                device=str(change.device),
                before=change.before.value,
                after=change.after.value,
                message=change.message,
            )

    async def count_devices(self, stop: asyncio.Event) -> None:
        """Keep the metrics of devices, now and then: there may be a whole fleet."""
        while not stop.is_set():
            counts = self._state.count_devices()
            for driver in {driver for driver, _ in counts}:
                for status in HealthStatus:
                    gauge = DEVICES_BY_HEALTH.labels(driver, status.value)
                    gauge.set(counts[driver, status])
            await first_of(stop, within_s=_COUNT_S)

    async def publish_changes(self, stop: asyncio.Event) -> None:
        """Send what is dirty; everything again after each reconnect and now and then.

        Raises:
            StreamDiffersError: trying again does not help, a person must look.
        """
        repeated_s = self._clock().monotonic_s
        while not stop.is_set():
            if self._bus.connected and self._has_voice:
                repeated_s = self._mark_repeats_dirty(repeated_s)
                try:
                    await self._resync_bus(stop)
                    await self._send_dirty(stop)
                except StreamDiffersError:
                    raise
                except BusError as error:
                    log.warning("announcement.failed", reason=str(error))
                    await first_of(stop, within_s=_RETRY_S)
            await first_of(stop, self._wake, within_s=self._settings.read_s)
            self._wake.clear()

    def _mark_repeats_dirty(self, since_s: float) -> float:
        now_s = self._clock().monotonic_s
        nodes = self._source.nodes
        for index in list_due(
            len(nodes), self._settings.repeat_s, self._phase, since_s, now_s
        ):
            self._state.mark_dirty(nodes[index], RESEND)
        return now_s

    async def _resync_bus(self, stop: asyncio.Event) -> None:
        """Once a connection: see to the streams; have everything sent again."""
        connection = self._bus.connection
        if connection == self._synced_connection:
            return
        if self._settings.create_streams:
            await self._bus.ensure_streams(_OWN_STREAMS)
        if self._synced_connection is not None:
            # Another connection: the bus may have lost anything. Agents come one after
            # the other, and heartbeats need not wait for their turn.
            self._synced_connection = connection
            await first_of(stop, within_s=self._phase * self._settings.spread_s)
            self._state.mark_all_dirty(RESEND)
            log.info("announcements.repeated", node_count=self._state.dirty_count)
        self._synced_connection = connection

    async def _send_dirty(self, stop: asyncio.Event) -> None:
        """Send the messages of all dirty nodes, a chunk of nodes at a time."""
        node_count = changed_count = 0
        undiscovered: set[NodeName] = set()
        while self._state.dirty_count and not stop.is_set():
            dirty_by_node = self._state.take_dirty(_CHUNK_NODES)
            # First go on from what an earlier process sent.
            try:
                await self._restorer.restore(dirty_by_node)
            except BusError:
                for node, dirty in dirty_by_node.items():
                    self._state.mark_dirty(node, dirty)
                raise
            # Then make the messages; nodes that cannot be listed now come later.
            outgoing: list[Outgoing] = []
            for node, dirty in dirty_by_node.items():
                try:
                    messages_of_node, is_changed = await self._make_messages(
                        node, dirty
                    )
                except SourceError as error:
                    self._warn_once(node, error)
                    undiscovered.add(node)
                else:
                    outgoing.extend(messages_of_node)
                    changed_count += is_changed
            # Then send them. After a failure nobody knows which of them arrived.
            try:
                await self._bus.publish_many(outgoing)
            except BusError:
                for node in (*dirty_by_node, *undiscovered):
                    self._state.mark_dirty(node, RESEND)
                raise
            await self._send_drift(dirty_by_node)
            node_count += len(dirty_by_node)
        # Marked only now: the loop above would take them again at once, for ever.
        for node in undiscovered:
            self._state.mark_dirty(node, RESEND)
        self._undiscovered &= undiscovered
        self.has_announced = self.has_announced or not stop.is_set()
        ANNOUNCED.inc(changed_count)
        if changed_count:
            log.info(
                "nodes.announced", node_count=node_count, changed_count=changed_count
            )

    def _warn_once(self, node: NodeName, error: SourceError) -> None:
        if node not in self._undiscovered:
            self._undiscovered.add(node)
            log.warning("devices.undiscovered", node=node, reason=error.reason)

    async def _make_messages(
        self, node: NodeName, dirty: Dirty
    ) -> tuple[list[Outgoing], bool]:
        """Return what is to be sent about a node, and whether any of it is changed."""
        outgoing: list[Outgoing] = []
        is_changed = False
        if dirty.inventory:
            devices = await self._source.discover(node)
            inventory = self._state.make_inventory(devices, dirty)
            if inventory is not None:
                outgoing.append(Outgoing.of(INVENTORIES, inventory.message))
                is_changed = inventory.is_changed
        health = self._state.make_health(node, dirty)
        if health is not None:
            outgoing.append(Outgoing.of(HEALTH, health.message))
            is_changed = is_changed or health.is_changed
        return outgoing, is_changed

    async def _send_drift(self, dirty_by_node: Mapping[NodeName, Dirty]) -> None:
        """Send drift separately, as no decision depends on it.

        Drift that was not sent is sent when it changes, or with everything.
        """
        drifts = [
            self._state.make_drift(node, dirty) for node, dirty in dirty_by_node.items()
        ]
        outgoing = [Outgoing.of(DRIFT, drift) for drift in drifts if drift is not None]
        try:
            if outgoing:
                await self._bus.publish_many(outgoing)
        except BusError as error:
            log.warning("drift.untold", reason=str(error))

    async def notice_losses(self, stop: asyncio.Event) -> None:
        """Send everything again once the bus has lost what was said of a node.

        Readers that know it would miss it at their next start: after a purge, or
        where a stream is older than its copy was. One node at a time, in turns.
        """
        await first_of(stop, within_s=self._phase * self._settings.verify_s)
        for node in cycle(self._source.nodes):
            await first_of(stop, within_s=self._settings.verify_s)
            if stop.is_set():
                return
            speaks = self.has_announced and self._has_voice and self._bus.connected
            if speaks and node not in self._undiscovered and await self._is_lost(node):
                log.warning("announcements.lost", node=node)
                self._state.mark_all_dirty(RESEND)
                self._wake.set()

    async def _is_lost(self, node: NodeName) -> bool:
        """True if nobody can read on the bus what was said of a node."""
        try:
            found = [
                await self._bus.read_last(topic, self._cluster, node)
                for topic in (INVENTORIES, HEALTH)
            ]
        except (ContractsError, MessageError):
            return True  # written over by somebody
        except BusError:
            return False  # nothing is known of it now
        return None in found

    async def publish_heartbeats(self, stop: asyncio.Event) -> None:
        """Show that the nodes are alive, spread over the interval."""
        nodes, interval_s = self._source.nodes, self._settings.heartbeat_s
        sent_s = self._clock().monotonic_s - interval_s
        while not stop.is_set():
            now_s = self._clock().monotonic_s
            if self._bus.connected and self._synced_connection == self._bus.connection:
                indices = list_due(len(nodes), interval_s, self._phase, sent_s, now_s)
                sent_s = now_s
                if indices and len(nodes) == 1:
                    await self._look_for_newer(nodes[0])
                if self._has_voice:
                    await self._send_heartbeats([nodes[index] for index in indices])
            await first_of(stop, within_s=interval_s / _HEARTBEAT_SLOTS)

    async def _look_for_newer(self, node: NodeName) -> None:
        """Be silent while a newer agent serves our node; go on when it is gone."""
        try:
            last = await self._bus.read_last(HEARTBEATS, self._cluster, node)
        except (BusError, ContractsError):
            return  # what cannot be read silences nobody
        message = None if last is None else last.message
        other = message.incarnation if isinstance(message, NodeSeen) else ""
        has_voice = not is_newer(other, self._incarnation)
        if has_voice == self._has_voice:
            return
        self._has_voice = has_voice
        if has_voice:
            log.info("voice.resumed", node=node)
            self._state.mark_all_dirty(RESEND)
            self._wake.set()
        else:
            log.warning("voice.yielded", node=node, newer=other)

    async def _send_heartbeats(self, nodes: list[NodeName]) -> None:
        outgoing = [
            Outgoing.of(
                HEARTBEATS,
                NodeSeen(
                    cluster=self._cluster, node=node, incarnation=self._incarnation
                ),
            )
            for node in nodes
            if node not in self._away
        ]
        try:
            await self._bus.publish_many(outgoing)
        except BusError as error:
            log.warning("heartbeats.failed", reason=str(error))
