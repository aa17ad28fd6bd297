"""What the agent believes of its nodes, what it told the bus, and what is due.

The one state of the agent: readings and discoveries go in, messages that must be sent
come out. No I/O and no clock, so every order of events can be tested. A node costs a
few hundred bytes: hashes of what was said, and what is not healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Generic, TypeVar

from msgspec import Struct, structs

from contracts import messages
from contracts.ids import ClusterName, DeviceID, NodeName
from contracts.messages import DevicesAnnounced, HealthJudged
from nodeagent import health, inventory
from nodeagent.health import (
    HealthChange,
    HealthPolicy,
    HealthState,
    Moment,
    Reading,
    Symptom,
)
from nodeagent.inventory import Announced, NodeDevices

T = TypeVar("T")


class NodeBelief(Struct, frozen=True, kw_only=True):
    """One node: what is believed, and what was said last."""

    devices: tuple[DeviceID, ...] = ()
    announced: Announced | None = None
    health: HealthState = {}
    health_said: bytes | None = None
    """Hash of the last message about its health."""


class Due(Struct, frozen=True):
    """What must be looked at again for a node; `repeat`: send even if it is known."""

    inventory: bool = False
    health: bool = False
    repeat: bool = False

    def and_also(self, other: Due) -> Due:
        """Both at once."""
        return Due(
            self.inventory or other.inventory,
            self.health or other.health,
            self.repeat or other.repeat,
        )


class Saying(Struct, Generic[T], frozen=True):
    """A message to send; `news`: it is not what was said last."""

    message: T
    news: bool


ALL = Due(inventory=True, health=True)
AGAIN = Due(inventory=True, health=True, repeat=True)
DEVICES = Due(inventory=True)
HEALTH = Due(health=True)


class Book:
    """The beliefs of one agent about all of its nodes."""

    def __init__(
        self, cluster: ClusterName, nodes: Iterable[NodeName], policy: HealthPolicy
    ) -> None:
        self._cluster = cluster
        self._policy = policy
        self._beliefs: dict[NodeName, NodeBelief] = {
            node: NodeBelief() for node in nodes
        }
        self._due: dict[NodeName, Due] = dict.fromkeys(self._beliefs, ALL)

    @property
    def due_count(self) -> int:
        """Nodes about which something may have to be sent."""
        return len(self._due)

    def recall_inventory(self, message: DevicesAnnounced) -> None:
        """Believe an announcement made before this process started."""
        belief = self._beliefs.get(message.node)
        if belief is not None:
            announced = inventory.recall(message)
            self._beliefs[message.node] = structs.replace(belief, announced=announced)

    def recall_health(self, message: HealthJudged) -> None:
        """Believe what was said of a node's health before this process started."""
        belief = self._beliefs.get(message.node)
        if belief is not None:
            self._beliefs[message.node] = structs.replace(
                belief,
                health=health.recall(message, belief.health),
                health_said=_digest(messages.HEALTH.encode(message)),
            )

    def look(
        self, readings: Mapping[NodeName, tuple[Reading, ...]], now: Moment
    ) -> tuple[HealthChange, ...]:
        """Judge one look at all nodes; nodes with changes become due."""
        changes: list[HealthChange] = []
        for node, belief in self._beliefs.items():
            looks = readings.get(node, ())
            if not looks and not belief.health:
                continue
            state, changed = health.judge(self._policy, belief.health, looks, now)
            self._beliefs[node] = structs.replace(belief, health=state)
            if changed:
                self.make_due(node, HEALTH)
                changes.extend(changed)
        return tuple(changes)

    def silence(self, now: Moment, reason: str) -> tuple[HealthChange, ...]:
        """Judge a look that failed as a whole: nothing was heard of any device."""
        return self.look(
            {
                node: tuple(
                    Reading(device, Symptom.SILENT, reason) for device in belief.devices
                )
                for node, belief in self._beliefs.items()
            },
            now,
        )

    def make_due(self, node: NodeName, due: Due) -> None:
        """Note that something may have to be sent about a node."""
        self._due[node] = self._due.get(node, Due()).and_also(due)

    def make_all_due(self, due: Due) -> None:
        """Note it for every node."""
        for node in self._beliefs:
            self.make_due(node, due)

    def take_due(self, limit: int) -> dict[NodeName, Due]:
        """Take up to `limit` nodes that are due, first come first served."""
        taken = list(self._due)[:limit]
        return {node: self._due.pop(node) for node in taken}

    def next_inventory(
        self, devices: NodeDevices, due: Due
    ) -> Saying[DevicesAnnounced] | None:
        """Give the announcement to send, if one is; it counts as said from now on.

        A failed sending must be made due again with `repeat`: the bus may have it, so
        its generations are used up.
        """
        belief = self._beliefs[devices.node]
        message, announced = inventory.announce(
            self._cluster, devices, belief.announced
        )
        change = inventory.difference(belief.announced, announced)
        ids = devices.device_ids
        self._beliefs[devices.node] = structs.replace(
            belief,
            devices=ids,
            announced=announced,
            health=health.known(belief.health, frozenset(ids)),
        )
        news = change is not None
        return Saying(message, news) if news or due.repeat else None

    def next_health(self, node: NodeName, due: Due) -> Saying[HealthJudged] | None:
        """Give the health message to send, if one is; it counts as said from now on."""
        belief = self._beliefs[node]
        message = health.to_message(self._policy, self._cluster, node, belief.health)
        digest = _digest(messages.HEALTH.encode(message))
        news = digest != belief.health_said
        self._beliefs[node] = structs.replace(belief, health_said=digest)
        return Saying(message, news) if news or due.repeat else None


def _digest(data: bytes) -> bytes:
    return sha256(data).digest()[:16]
