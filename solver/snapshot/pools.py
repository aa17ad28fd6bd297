"""Pools as parts, made from inventories or from ResourceSlices.

Keeps every slice of every generation: which of them count depends on the node that
looks (KEP-4381), so that is decided later. Pure; knows neither who holds the devices
nor the gangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contracts.announcing import describe_contest
from contracts.device import ResourcePool, ResourceSlice
from contracts.ids import NodeName, PoolID
from solver.snapshot.maps import FrozenMap
from solver.snapshot.parts import PoolPart, PoolSlice


def pool_of_inventory(pool: ResourcePool, node: NodeName) -> PoolPart:
    """Take a pool as its node agent announced it: always whole.

    Counters lie in a slice of their own, as in the ResourceSlices that are published.
    """
    has_counters = bool(pool.shared_counters)
    devices = PoolSlice(
        name="devices",
        generation=pool.generation,
        slice_count=1 + has_counters,
        node_name=node,
        devices=pool.devices,
    )
    counters = PoolSlice(
        name="counters",
        generation=pool.generation,
        slice_count=2,
        node_name=node,
        shared_counters=pool.shared_counters,
    )
    slices = (counters, devices) if has_counters else (devices,)
    return PoolPart(driver=pool.driver, pool=pool.name, node=node, slices=slices)


def pool_of_collision(pool: ResourcePool, nodes: Iterable[NodeName]) -> PoolPart:
    """Keep a pool out that several node agents claim as their own."""
    contest = describe_contest(PoolID(pool.driver, pool.name), nodes)
    return PoolPart(driver=pool.driver, pool=pool.name, contested=contest)


def pool_of_slices(slices: Mapping[str, ResourceSlice]) -> PoolPart:
    """Put the slices of one pool together; `slices` by key, at least one."""
    ordered = sorted(
        slices.values(),
        key=lambda resource_slice: resource_slice.metadata.name.encode(),
    )
    return PoolPart(
        driver=ordered[0].spec.driver,
        pool=ordered[0].spec.pool.name,
        node=find_node(ordered) or NodeName(""),
        slices=tuple(PoolSlice.of(resource_slice) for resource_slice in ordered),
    )


def find_node(slices: Iterable[ResourceSlice]) -> NodeName | None:
    """Find the one node that every slice of a pool names; None: there is none."""
    nodes = {resource_slice.spec.node_name for resource_slice in slices}
    return nodes.pop() or None if len(nodes) == 1 else None


def list_named_nodes(pool: PoolPart) -> frozenset[NodeName]:
    """List the nodes that a pool of several nodes names, for slices or for devices."""
    if pool.node:
        return frozenset()
    return frozenset(
        name
        for pool_slice in pool.slices
        for name in (
            pool_slice.node_name,
            *(device.node_name for device in pool_slice.devices),
        )
        if name
    )


def with_announcer(
    announcers: FrozenMap[str, tuple[NodeName, ...]],
    key: str,
    node: NodeName,
    *,
    announces: bool,
) -> FrozenMap[str, tuple[NodeName, ...]]:
    """Note that a node's agent announces a pool, or does not any more."""
    others = tuple(name for name in announcers.get(key) or () if name != node)
    nodes = tuple(sorted((*others, node))) if announces else others
    return announcers.with_item(key, nodes) if nodes else announcers.without(key)
