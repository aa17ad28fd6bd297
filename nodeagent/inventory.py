"""Turns a node's devices into its announcement, and finds what differs from the last.

A pool's generation rises exactly when its content changes: health is no part of it.
Only hashes of what was announced are kept, so one process can stand for thousands of
nodes. Pure; knows nothing of the bus or of where devices come from.
"""

from __future__ import annotations

from hashlib import sha256

from msgspec import Struct, structs

from contracts.codec import encode
from contracts.device import ResourcePool
from contracts.ids import ClusterName, DeviceID, NodeName, PoolID
from contracts.messages import DevicesAnnounced
from contracts.quantity import Quantity

_DIGEST_BYTES = 16


class NodeDevices(Struct, frozen=True, kw_only=True):
    """All that a source lists on a node; generations are not its business."""

    node: NodeName
    pools: tuple[ResourcePool, ...] = ()
    labels: dict[str, str] = {}
    resources: dict[str, Quantity] = {}
    """Its resources for all pods, such as cpu and memory."""
    watched: tuple[DeviceID, ...] = ()
    """Devices that other drivers publish: their health is told, they are not announced.
    """

    @property
    def device_ids(self) -> tuple[DeviceID, ...]:
        """All devices, in the order of the pools; those of other drivers last."""
        announced = tuple(
            DeviceID(pool.driver, pool.name, device.name)
            for pool in self.pools
            for device in pool.devices
        )
        return (*announced, *self.watched)


class AnnouncedPool(Struct, frozen=True):
    """The generation a pool was announced with, and the hash of its content."""

    generation: int
    digest: bytes
    """Empty once the pool is gone: its generation is kept for its return."""


class AnnouncedNode(Struct, frozen=True, kw_only=True):
    """The record of an announcement."""

    digest: bytes
    """Of the node as a whole."""
    pools: dict[PoolID, AnnouncedPool] = {}


class InventoryChange(Struct, frozen=True, kw_only=True):
    """How an announcement differs from the one before."""

    pools: tuple[PoolID, ...] = ()
    """New, changed or gone; empty when only labels or resources changed."""


def announce(
    cluster: ClusterName, devices: NodeDevices, last: AnnouncedNode | None
) -> tuple[DevicesAnnounced, AnnouncedNode]:
    """Write the announcement of a node, continuing the generations of the last one."""
    last_pools = last.pools if last else {}
    announced_pools = {
        pool_id: AnnouncedPool(pool.generation, b"")
        for pool_id, pool in last_pools.items()
    }
    pools: list[ResourcePool] = []
    for pool in devices.pools:
        pool_id = PoolID(pool.driver, pool.name)
        digest = _digest_pool(pool)
        last_pool = last_pools.get(pool_id, AnnouncedPool(0, b""))
        generation = last_pool.generation + (last_pool.digest != digest)
        announced_pools[pool_id] = AnnouncedPool(generation, digest)
        pools.append(structs.replace(pool, generation=generation))
    message = DevicesAnnounced(
        cluster=cluster,
        node=devices.node,
        pools=tuple(sorted(pools, key=lambda pool: (pool.driver, pool.name))),
        labels=devices.labels,
        resources=devices.resources,
    )
    digest = _digest(encode(message))
    return message, AnnouncedNode(digest=digest, pools=announced_pools)


def find_change(
    before: AnnouncedNode | None, after: AnnouncedNode
) -> InventoryChange | None:
    """Return what an announcement changes; None when it repeats the last one."""
    if before is not None and before.digest == after.digest:
        return None
    pools_before = before.pools if before else {}
    changed = {
        pool_id
        for pool_id in pools_before.keys() | after.pools.keys()
        if pools_before.get(pool_id) != after.pools.get(pool_id)
    }
    return InventoryChange(pools=tuple(sorted(changed)))


def restore(message: DevicesAnnounced) -> AnnouncedNode:
    """Return what is remembered of an announcement made before a restart."""
    return AnnouncedNode(
        digest=_digest(encode(message)),
        pools={
            PoolID(pool.driver, pool.name): AnnouncedPool(
                pool.generation, _digest_pool(pool)
            )
            for pool in message.pools
        },
    )


def _digest_pool(pool: ResourcePool) -> bytes:
    return _digest(encode(structs.replace(pool, generation=0)))


def _digest(data: bytes) -> bytes:
    return sha256(data).digest()[:_DIGEST_BYTES]
