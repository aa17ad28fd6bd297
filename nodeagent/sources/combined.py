"""Several sources as the one source of a node: none is in another's way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from contracts.ids import DeviceID, DriverName, NodeName, PoolID
from contracts.messages import MAX_NODE_DEVICES, MAX_NODE_POOLS, DevicesAnnounced
from nodeagent.cdi import ContainerEdits
from nodeagent.errors import SourceError
from nodeagent.health import Reading
from nodeagent.inventory import NodeDevices
from nodeagent.sources.part import SourcePart
from nodeagent.sources.source import DeviceDescription, PartitionHooks, Readings
from runtime.log import get_logger
from runtime.waits import together

log = get_logger(__name__)

T = TypeVar("T")

_GRACE_S = 0.05
"""Wait for slower sources before fast ones are reported alone."""


class CombinedSource:
    """The sources of one node.

    A part that fails is silent for its own devices only; what it listed last, in this
    process or the one before, stays announced meanwhile.
    """

    def __init__(self, node: NodeName, parts: tuple[SourcePart, ...]) -> None:
        self._node = node
        self._parts = parts
        self._refusals: Mapping[str, str] = {}
        """Parts of which nothing is announced now, each with the reason."""

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The one node."""
        return (self._node,)

    @property
    def drivers(self) -> tuple[DriverName, ...]:
        """The drivers of all parts whose devices are ours to announce and prepare."""
        ours = (part.source for part in self._parts if not part.health_only)
        drivers = {driver for source in ours for driver in source.drivers}
        return tuple(sorted(drivers))

    def recall(self, announced: DevicesAnnounced) -> None:
        """Take what was announced before this process began, until it is listed."""
        for part in self._parts:
            part.recall(announced.pools)

    async def discover(self, node: NodeName) -> NodeDevices:
        """List what all parts have, each as it was last if it does not answer now.

        Raises:
            SourceError: the node is not this one.
        """
        if node != self._node:
            raise SourceError("sources", f"the node is {self._node!r}, not {node!r}")
        await together(part.discover() for part in self._parts)
        parts: list[NodeDevices] = []
        refusals: dict[str, str] = {}
        for part in self._parts:
            if part.devices is None:
                continue
            refusal = _find_conflict(parts, part.devices)
            if refusal:
                refusals[part.name] = refusal
            else:
                parts.append(part.devices)
        for name, reason in refusals.items():
            if self._refusals.get(name) != reason:
                log.warning("source.refused", source=name, reason=reason)
        self._refusals = refusals
        return NodeDevices(
            node=node,
            pools=tuple(pool for devices in parts for pool in devices.pools),
            labels=_merge_mappings(devices.labels for devices in parts),
            resources=_merge_mappings(devices.resources for devices in parts),
            watched=tuple(device for devices in parts for device in devices.watched),
        )

    async def read(self, now_s: float) -> Readings:
        """Return what the parts have answered by now."""
        started = [
            reading
            for part in self._parts
            if (reading := part.start_reading(now_s)) is not None
        ]
        if started:
            await asyncio.wait(started, timeout=_GRACE_S)
        symptoms: list[Reading] = []
        unread: set[DeviceID] = set()
        changed: frozenset[NodeName] = frozenset()
        away: frozenset[NodeName] = frozenset()
        for part in self._parts:
            readings = part.take_readings(now_s)
            symptoms.extend(readings.symptoms.get(self._node, ()))
            unread |= readings.unread
            changed |= readings.changed
            away |= readings.away
        return Readings(
            symptoms={self._node: tuple(symptoms)},
            changed=changed,
            unread=frozenset(unread),
            away=away,
        )

    async def edits(self, device: DeviceID) -> ContainerEdits:
        """Return the container edits of a device from the part that has it.

        Raises:
            SourceError: no part has it, or it cannot be described now.
        """
        for part in self._parts:
            edits = await part.edits(device)
            if edits is not None:
                return edits
        raise SourceError("sources", f"{device} is not here")

    async def describe(self, device: DeviceID) -> DeviceDescription:
        """Return the description of a device from the part that has it.

        Raises:
            SourceError: no part has it, or nothing can be read of it now.
        """
        for part in self._parts:
            description = await part.describe(device)
            if description is not None:
                return description
        raise SourceError("sources", f"{device} is not here")

    def find_hooks(self, device: DeviceID) -> PartitionHooks | None:
        """Return what sets a device up and tears it down."""
        return next(
            filter(None, (part.find_hooks(device) for part in self._parts)), None
        )

    async def close(self) -> None:
        """End what is still asked."""
        await together(part.close() for part in self._parts)


def _find_conflict(taken: list[NodeDevices], more: NodeDevices) -> str:
    """Return why a part cannot be announced beside others; empty if it can."""
    pools = {pool_id for devices in taken for pool_id in _list_pools(devices)}
    for pool_id in _list_pools(more):
        if pool_id in pools:
            return f"another source has the pool {pool_id} too"
    if sum(len(devices.pools) for devices in (*taken, more)) > MAX_NODE_POOLS:
        return f"the node would have more than {MAX_NODE_POOLS} pools"
    if sum(len(devices.device_ids) for devices in (*taken, more)) > MAX_NODE_DEVICES:
        return f"the node would have more than {MAX_NODE_DEVICES} devices"
    return ""


def _list_pools(devices: NodeDevices) -> Iterator[PoolID]:
    return (PoolID(pool.driver, pool.name) for pool in devices.pools)


def _merge_mappings(mappings: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """Join mappings; the first that has a key wins."""
    merged: dict[str, T] = {}
    for mapping in mappings:
        merged = {**mapping, **merged}
    return merged
