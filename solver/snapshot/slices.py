"""ResourceSlices as the source of pools that no node agent announces. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from contracts.device import ResourceSlice
from contracts.errors import DecodeError
from contracts.pods.node_affinity import find_unreadable_numbers
from contracts.validate.nodes import check_node_selector
from solver.snapshot.inventory import Inventory, with_pools
from solver.snapshot.parts import pool_key


def check_selection(key: str, resource_slice: ResourceSlice) -> None:
    """Require of a slice that any node can be told whether it sees the devices.

    Else it is an error of every node, as kube-scheduler has it: no pod of anybody gets
    devices. The API server lets numbers through that are none (`Gt`, `Lt`).

    Raises:
        DecodeError: a node selector cannot be evaluated.
    """
    spec = resource_slice.spec
    selectors = {"spec": spec.node_selector}
    for number, device in enumerate(spec.devices):
        if device.node_selector is not None:
            selectors[f"spec.devices[{number}]"] = device.node_selector
    for place, selector in selectors.items():
        if selector is None:
            continue
        path = f"{place}.nodeSelector"
        for broken in check_node_selector(selector, path):
            reason = f"{broken.rule}: {broken.message}"
            raise DecodeError(f"ResourceSlice {key}", broken.field, reason)
        for field in find_unreadable_numbers(selector):
            reason = "must be an integer of 64 bits for `Gt` and `Lt`"
            raise DecodeError(f"ResourceSlice {key}", f"{path}.{field}", reason)


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
