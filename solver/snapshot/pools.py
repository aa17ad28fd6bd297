"""Pools as the allocator may use them, made from inventories or from ResourceSlices.

Which slices count, whether the pool is complete and valid, and in which order its
devices stand (Kubernetes' rules for pools: KEP-4381, `pool.generation` and
`resourceSliceCount`). Pure; knows neither who holds the devices nor the gangs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from contracts.device import Device, ResourcePool, ResourceSlice
from contracts.ids import NodeName
from solver.snapshot.parts import PoolPart


def pool_of_inventory(pool: ResourcePool, node: NodeName) -> PoolPart:
    """Take a pool as its node agent announced it: always whole."""
    return PoolPart(
        driver=pool.driver,
        pool=pool.name,
        node=node,
        generation=pool.generation,
        devices=pool.devices,
        invalid=_duplicate(pool.devices),
        not_modelled="sharedCounters" if pool.shared_counters else "",
    )


def pool_of_collision(pool: ResourcePool, nodes: Iterable[NodeName]) -> PoolPart:
    """Keep a pool out that several node agents claim as their own."""
    names = ", ".join(sorted(nodes))
    return PoolPart(
        driver=pool.driver,
        pool=pool.name,
        invalid=f"announced by several nodes: {names}",
    )


def pool_of_slices(slices: Mapping[str, ResourceSlice]) -> PoolPart:
    """Put the slices of one pool together; `slices` by key, at least one.

    Only the highest generation counts, and the pool is incomplete unless as many
    slices exist as the first of them promises.
    """
    generation = max(item.spec.pool.generation for item in slices.values())
    current = sorted(
        (item for item in slices.values() if item.spec.pool.generation == generation),
        key=lambda item: item.metadata.name.encode(),
    )
    first = current[0].spec
    devices = tuple(device for item in current for device in item.spec.devices)
    return PoolPart(
        driver=first.driver,
        pool=first.pool.name,
        node=first.node_name or NodeName(""),
        generation=generation,
        devices=devices,
        incomplete=len(current) != first.pool.resource_slice_count,
        invalid=_duplicate(devices),
        not_modelled=_field_not_modelled(current),
    )


def device_not_modelled(device: Device) -> str:
    """Name the field of a device that this version cannot decide with, or ""."""
    if device.consumes_counters:
        return "consumesCounters"
    if device.allow_multiple_allocations:
        return "allowMultipleAllocations"
    if device.binding_conditions:
        return "bindingConditions"
    if device.node_allocatable_resources:
        return "nodeAllocatableResources"
    return ""


def _field_not_modelled(slices: Iterable[ResourceSlice]) -> str:
    nodes = set()
    for item in slices:
        spec = item.spec
        nodes.add(spec.node_name)
        if spec.shared_counters:
            return "sharedCounters"
        if spec.per_device_node_selection:
            return "perDeviceNodeSelection"
        if spec.node_selector is not None:
            return "nodeSelector"
        if spec.all_nodes:
            return "allNodes"
        if spec.skip_node_operations:
            return "skipNodeOperations"
    return "nodeName" if len(nodes) > 1 else ""


def _duplicate(devices: Iterable[Device]) -> str:
    counts = Counter(device.name for device in devices)
    twice = min((name for name, count in counts.items() if count > 1), default=None)
    return "" if twice is None else f"two devices named {twice}"
