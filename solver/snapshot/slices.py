"""ResourceSlices as the source of pools that no node agent announces. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from contracts.device import ResourceSlice
from solver.snapshot.inventory import Inventory, with_pools
from solver.snapshot.parts import pool_key


def with_slice(
    inventory: Inventory, key: str, resource_slice: ResourceSlice
) -> Inventory:
    """Apply a ResourceSlice."""
    return with_slices(inventory, {key: resource_slice})


def with_slices(inventory: Inventory, slices: Mapping[str, ResourceSlice]) -> Inventory:
    """Apply ResourceSlices by key, each pool once."""
    pools = {key: _pool_of(each) for key, each in slices.items()}
    for key, pool in pools.items():
        if inventory.slice_pools.get(key) not in (None, pool):
            inventory = without_slice(inventory, key)
    by_pool: dict[str, dict[str, ResourceSlice]] = {}
    for key, pool in pools.items():
        known = by_pool.get(pool) or inventory.slices.get(pool) or {}
        if known.get(key) != slices[key]:
            by_pool.setdefault(pool, dict(known))[key] = slices[key]
    if not by_pool:
        return inventory
    changed = structs.replace(
        inventory,
        slices=inventory.slices.with_items(by_pool),
        slice_pools=inventory.slice_pools.with_items(pools),
    )
    return with_pools(changed, by_pool)


def _pool_of(resource_slice: ResourceSlice) -> str:
    return pool_key(resource_slice.spec.driver, resource_slice.spec.pool.name)


def without_slice(inventory: Inventory, key: str) -> Inventory:
    """Drop a ResourceSlice that is gone."""
    pool = inventory.slice_pools.get(key)
    if pool is None:
        return inventory
    remaining = dict(inventory.slices.get(pool) or {})
    remaining.pop(key, None)
    slices = inventory.slices
    changed = structs.replace(
        inventory,
        slices=slices.with_item(pool, remaining) if remaining else slices.without(pool),
        slice_pools=inventory.slice_pools.without(key),
    )
    return with_pools(changed, (pool,))
