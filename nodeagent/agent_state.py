"""The agent's nodes: what it knows, what it has sent, and what it must send.

The one state of the agent: readings and discoveries go in, messages to send come out.
No I/O and no clock, so every order of events can be tested. A node costs a few hundred
bytes: hashes of what was sent, and what is not healthy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Generic, TypeVar

from msgspec import Struct, structs

from contracts import topics
from contracts.drift import DeviceDrift, DriftFound
from contracts.ids import ClusterName, DeviceID, DriverName, NodeName
from contracts.messages import DevicesAnnounced, HealthJudged
from nodeagent import health, inventory
from nodeagent.health import (
    DeviceRecord,
    HealthChange,
    HealthPolicy,
    HealthState,
    HealthStatus,
    Moment,
    Reading,
    Symptom,
)
from nodeagent.inventory import AnnouncedNode, NodeDevices

T = TypeVar("T")

NOT_JUDGED = "not judged yet since the agent started"


class NodeRecord(Struct, frozen=True, kw_only=True):
    """One node: its devices and their health, and what was sent of it last."""

    devices: tuple[DeviceID, ...] = ()
    announced: AnnouncedNode | None = None
    health: HealthState = {}
    health_digest: bytes | None = None
    """Hash of the last message about its health."""
    drift: tuple[DeviceDrift, ...] | None = None
    """Differences between what runs there and what was decided; None: not checked."""


class Dirty(Struct, frozen=True):
    """Which messages about a node may have changed; `resend`: send them even if not."""

    inventory: bool = False
    health: bool = False
    drift: bool = False
    resend: bool = False

    def union(self, other: Dirty) -> Dirty:
        """Return what is dirty by either."""
        return Dirty(
            self.inventory or other.inventory,
            self.health or other.health,
            self.drift or other.drift,
            self.resend or other.resend,
        )


class OutgoingMessage(Struct, Generic[T], frozen=True):
    """A message to send; `is_changed`: it is not what was sent last."""

    message: T
    is_changed: bool


EVERYTHING = Dirty(inventory=True, health=True)
RESEND = Dirty(inventory=True, health=True, drift=True, resend=True)
DEVICES = Dirty(inventory=True)
HEALTH = Dirty(health=True)
DRIFT = Dirty(drift=True)


class AgentState:
    """The state of all nodes of one agent.

    Whoever marks nodes dirty calls `take_dirty` next, makes the messages of each taken
    node, inventory first, and sends them. Nodes whose messages may not have arrived
    are marked dirty again, with `RESEND`.
    """

    def __init__(
        self, cluster: ClusterName, nodes: Iterable[NodeName], policy: HealthPolicy
    ) -> None:
        self._cluster = cluster
        self._policy = policy
        self._records: dict[NodeName, NodeRecord] = {
            node: NodeRecord() for node in nodes
        }
        self._dirty: dict[NodeName, Dirty] = dict.fromkeys(self._records, EVERYTHING)
        self._judged: dict[NodeName, frozenset[DeviceID]] = {}
        """Devices of nodes that are followed and were judged since the start."""

    @property
    def dirty_count(self) -> int:
        """Nodes about which something may have to be sent."""
        return len(self._dirty)

    def follow_verdicts(self, node: NodeName, devices: tuple[DeviceID, ...]) -> None:
        """Tell verdicts on a node's devices from the lack of one from now on.

        `devices` are there now: an announcement, which replaces them, may be long in
        coming. Costs memory for each device.
        """
        self._judged[node] = frozenset()
        self._records[node] = structs.replace(self._records[node], devices=devices)

    def restore_inventory(self, message: DevicesAnnounced) -> None:
        """Go on from an announcement that was sent before this process started."""
        record = self._records.get(message.node)
        if record is not None:
            announced = inventory.restore(message)
            self._records[message.node] = structs.replace(record, announced=announced)

    def restore_health(self, message: HealthJudged) -> None:
        """Go on from a node's health as it was sent before this process started."""
        record = self._records.get(message.node)
        if record is not None:
            self._records[message.node] = structs.replace(
                record,
                health=health.restore(message, record.health),
                health_digest=_digest(topics.HEALTH.codec.encode(message)),
            )

    def judge_readings(
        self,
        readings_by_node: Mapping[NodeName, tuple[Reading, ...]],
        now: Moment,
        unread: frozenset[DeviceID] = frozenset(),
    ) -> tuple[HealthChange, ...]:
        """Judge readings of all nodes; nodes with changes become dirty.

        `unread` are devices of which this look says nothing new.
        """
        changes: list[HealthChange] = []
        for node, judged in self._judged.items():
            # Read, and good; for a verdict on a symptom its status is enough.
            present = frozenset(self._records[node].devices)
            ailing = {reading.device for reading in readings_by_node.get(node, ())}
            self._judged[node] = (judged & present) | (present - ailing - unread)
        for node, record in self._records.items():
            readings = readings_by_node.get(node, ())
            if not readings and not record.health:
                continue
            devices, node_changes = health.judge(
                self._policy, record.health, readings, now, unread
            )
            self._records[node] = structs.replace(record, health=devices)
            if node_changes:
                self.mark_dirty(node, HEALTH)
                changes.extend(node_changes)
        return tuple(changes)

    def judge_silence(self, now: Moment, reason: str) -> tuple[HealthChange, ...]:
        """Judge a look that failed as a whole: nothing was heard of any device."""
        return self.judge_readings(
            {
                node: tuple(
                    Reading(device, Symptom.SILENT, reason) for device in record.devices
                )
                for node, record in self._records.items()
            },
            now,
        )

    def count_devices(self) -> Counter[tuple[DriverName, HealthStatus]]:
        """Count the devices of all nodes by driver and health."""
        counts: Counter[tuple[DriverName, HealthStatus]] = Counter()
        for node, record in self._records.items():
            for device in record.devices:
                status, _ = self.find_verdict(node, device)
                counts[device.driver, status] += 1
        return counts

    def list_devices(self, node: NodeName) -> tuple[DeviceID, ...]:
        """List the devices of a node, as last discovered."""
        return self._records[node].devices

    def find_verdict(
        self, node: NodeName, device: DeviceID
    ) -> tuple[HealthStatus, str]:
        """Return the health of a device, and words about it.

        Unknown on a node that is followed until readings prove more, or it is known how
        it was before this process started.
        """
        record = self._records[node].health.get(device, DeviceRecord())
        is_judged = node not in self._judged or device in self._judged[node]
        if record.status is HealthStatus.HEALTHY and not is_judged:
            return HealthStatus.UNKNOWN, NOT_JUDGED
        return record.status, record.message

    def note_drift(self, node: NodeName, drift: tuple[DeviceDrift, ...]) -> None:
        """Take in all that runs on a node otherwise than was decided."""
        record = self._records[node]
        if drift != record.drift:
            self._records[node] = structs.replace(record, drift=drift)
            self.mark_dirty(node, DRIFT)

    def mark_dirty(self, node: NodeName, dirty: Dirty) -> None:
        """Note that something may have to be sent about a node."""
        self._dirty[node] = self._dirty.get(node, Dirty()).union(dirty)

    def mark_all_dirty(self, dirty: Dirty) -> None:
        """Note it for every node."""
        for node in self._records:
            self.mark_dirty(node, dirty)

    def take_dirty(self, limit: int) -> dict[NodeName, Dirty]:
        """Take up to `limit` dirty nodes, first come first served."""
        nodes = list(self._dirty)[:limit]
        return {node: self._dirty.pop(node) for node in nodes}

    def make_inventory(
        self, devices: NodeDevices, dirty: Dirty
    ) -> OutgoingMessage[DevicesAnnounced] | None:
        """Return the announcement to send, if one is; it counts as sent from now on.

        If sending fails the caller marks the node dirty with `resend`: the bus may
        have the message, so its generations are used up.
        """
        record = self._records[devices.node]
        message, announced = inventory.announce(
            self._cluster, devices, record.announced
        )
        change = inventory.find_change(record.announced, announced)
        device_ids = devices.device_ids
        self._records[devices.node] = structs.replace(
            record,
            devices=device_ids,
            announced=announced,
            health=health.keep_devices(record.health, frozenset(device_ids)),
        )
        is_changed = change is not None
        if not is_changed and not dirty.resend:
            return None
        return OutgoingMessage(message, is_changed)

    def make_health(
        self, node: NodeName, dirty: Dirty
    ) -> OutgoingMessage[HealthJudged] | None:
        """Return the health message to send, if one is; it counts as sent from now on.

        If sending fails the caller marks the node dirty with `resend`.
        """
        record = self._records[node]
        message = health.to_message(self._policy, self._cluster, node, record.health)
        digest = _digest(topics.HEALTH.codec.encode(message))
        is_changed = digest != record.health_digest
        self._records[node] = structs.replace(record, health_digest=digest)
        if not is_changed and not dirty.resend:
            return None
        return OutgoingMessage(message, is_changed)

    def make_drift(self, node: NodeName, dirty: Dirty) -> DriftFound | None:
        """Return the message about drift to send, if one is."""
        drift = self._records[node].drift
        if drift is None or not dirty.drift:
            return None
        return DriftFound(cluster=self._cluster, node=node, devices=drift)


def _digest(data: bytes) -> bytes:
    return sha256(data).digest()[:16]
