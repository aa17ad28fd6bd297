"""What a message of the bus, or its end, means for the Snapshot; pure."""

from __future__ import annotations

from typing import Any

from contracts import topics
from contracts.ids import ClusterName, NodeName
from contracts.messages import HealthJudged
from runtime.wire import Incoming
from solver.snapshot.snapshot import InventoryExpired, SnapshotMessage


def snapshot_message(incoming: Incoming[Any]) -> SnapshotMessage | None:
    """Return what is to be applied to the Snapshot; None: it says nothing there."""
    if incoming.message is None:
        return _expired(incoming)
    if incoming.topic in (topics.HEARTBEATS, topics.FENCE):
        return None
    message: SnapshotMessage = incoming.message
    return message


def _expired(incoming: Incoming[Any]) -> InventoryExpired | HealthJudged | None:
    """Return what it means that a subject's value ended."""
    if incoming.topic not in (topics.INVENTORIES, topics.HEALTH):
        return None
    cluster, node = incoming.names
    if incoming.topic is topics.INVENTORIES:
        return InventoryExpired(node=NodeName(node))
    return HealthJudged(cluster=ClusterName(cluster), node=NodeName(node), devices=())
