"""Who holds which devices: decided gangs and allocated claims.

A device with a holder is taken; one with shares has less capacity left. A device or a
share may have two holders for a while (a decision of ours and the claim it was written
into), so holders are counted by name. A holder's name is `claim/` or `gang/`, its
namespace and its own name. Allocations with admin access take nothing (KEP-5018).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from contracts.allocation import AllocationResult, DeviceRequestAllocationResult
from solver.snapshot.device_uses import (
    DeviceUse,
    Uses,
    change_holder,
)
from solver.snapshot.inventory import Inventory, with_uses
from solver.snapshot.parts import pool_key

AllocationsByHolder = Mapping[str, Iterable[AllocationResult]]


def with_holder(
    inventory: Inventory, holder: str, allocations: Iterable[AllocationResult]
) -> Inventory:
    """Let the holder take the devices of its allocations."""
    return with_holders(inventory, {holder: allocations})


def with_holders(
    inventory: Inventory, allocations_by_holder: AllocationsByHolder
) -> Inventory:
    """Let each holder take the devices of its allocations, each pool once."""
    return _change_holders(inventory, allocations_by_holder, takes=True)


def without_holder(
    inventory: Inventory, holder: str, allocations: Iterable[AllocationResult]
) -> Inventory:
    """Let the holder give the devices of its allocations back."""
    return without_holders(inventory, {holder: allocations})


def without_holders(
    inventory: Inventory, allocations_by_holder: AllocationsByHolder
) -> Inventory:
    """Let each holder give the devices of its allocations back, each pool once."""
    return _change_holders(inventory, allocations_by_holder, takes=False)


def _change_holders(
    inventory: Inventory, allocations_by_holder: AllocationsByHolder, *, takes: bool
) -> Inventory:
    uses_by_pool = dict[str, Uses]()
    for holder, allocations in allocations_by_holder.items():
        for result in _list_results(allocations):
            key = pool_key(result.driver, result.pool)
            uses = uses_by_pool.get(key)
            if uses is None:
                uses = uses_by_pool[key] = dict(inventory.holders.get(key) or {})
            before = uses.pop(result.device, DeviceUse())
            use = change_holder(before, result, holder, takes=takes)
            if use.holders or use.shares:
                uses[result.device] = use
    if not uses_by_pool:
        return inventory
    held = {key: uses for key, uses in uses_by_pool.items() if uses}
    holders = inventory.holders.with_items(held)
    for key in uses_by_pool.keys() - held.keys():
        holders = holders.without(key)
    return with_uses(structs.replace(inventory, holders=holders), uses_by_pool)


def _list_results(
    allocations: Iterable[AllocationResult],
) -> list[DeviceRequestAllocationResult]:
    return [
        result
        for allocation in allocations
        for result in allocation.devices.results
        if not result.admin_access
    ]
