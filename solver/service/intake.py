"""What a message of the bus, or its end, means for the Snapshot; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts import topics
from contracts.device import ResourceSlice
from contracts.errors import DecodeError
from contracts.ids import ClusterName, NodeName
from contracts.kubernetes.decode import decode_object
from contracts.messages import HealthJudged, ObjectObserved
from contracts.validate.slices import check_node_selection
from runtime.wire import Incoming
from solver.snapshot.snapshot import InventoryExpired, SnapshotMessage


def snapshot_message(incoming: Incoming[Any]) -> SnapshotMessage | None:
    """Return what is to be applied to the Snapshot; None: it says nothing there.

    Raises:
        DecodeError: a ResourceSlice of which no node can be told whether it sees it.
    """
    if incoming.message is None:
        return _expired(incoming)
    if incoming.topic in (topics.HEARTBEATS, topics.FENCE):
        return None
    message: SnapshotMessage = incoming.message
    if isinstance(message, ObjectObserved) and _selects_nodes(message):
        _check_selection(message)
    return message


def _selects_nodes(message: ObjectObserved) -> bool:
    """True if a slice or a device of it may have a node selector, which few have."""
    spec = message.object.get("spec")
    if message.kind != "ResourceSlice" or not isinstance(spec, Mapping):
        return False
    devices = spec.get("devices")
    places = [spec, *(devices if isinstance(devices, list) else [])]
    return any("nodeSelector" in each for each in places if isinstance(each, Mapping))


def _check_selection(message: ObjectObserved) -> None:
    """Require that any node can be told whether it sees the devices of a slice."""
    value = decode_object(message.object).value
    if isinstance(value, ResourceSlice):
        for violation in check_node_selection(value):
            what = f"ResourceSlice {value.metadata.name}"
            raise DecodeError(what, violation.field, violation.reason)


def _expired(incoming: Incoming[Any]) -> InventoryExpired | HealthJudged | None:
    """Return what it means that a subject's value ended."""
    if incoming.topic not in (topics.INVENTORIES, topics.HEALTH):
        return None
    cluster, node = incoming.names
    if incoming.topic is topics.INVENTORIES:
        return InventoryExpired(node=NodeName(node))
    return HealthJudged(cluster=ClusterName(cluster), node=NodeName(node), devices=())
