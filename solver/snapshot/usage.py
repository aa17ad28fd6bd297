"""Who holds which devices: decided gangs and allocated claims.

A device with a holder is taken; one with shares has less capacity left. A device or a
share may have two holders for a while (a decision of ours and the claim it was written
into), so holders are counted by name. A holder's name is `claim/` or `gang/`, its
namespace and its own name. Allocations with admin access take nothing (KEP-5018).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from contracts.allocation import AllocationResult, DeviceRequestAllocationResult
from solver.snapshot.device_uses import DeviceUse, change_holder
from solver.snapshot.holdings import Change, count_change, list_freed, with_change
from solver.snapshot.inventory import Inventory, with_uses
from solver.snapshot.parts import pool_key


def with_holder(
    inventory: Inventory, holder: str, allocations: Iterable[AllocationResult]
) -> Inventory:
    """Let the holder take the devices of its allocations."""
    return _change_holders(inventory, holder, allocations, takes=True)


def without_holder(
    inventory: Inventory, holder: str, allocations: Iterable[AllocationResult]
) -> Inventory:
    """Let the holder give the devices of its allocations back."""
    return _change_holders(inventory, holder, allocations, takes=False)


def _change_holders(
    inventory: Inventory,
    holder: str,
    allocations: Iterable[AllocationResult],
    *,
    takes: bool,
) -> Inventory:
    holders, pools, change = inventory.holders, set(), Change()
    for result in _list_results(allocations):
        key = pool_key(result.driver, result.pool)
        pools.add(key)
        use_by_device = dict(holders.get(key) or {})
        before = use_by_device.pop(result.device, DeviceUse())
        use = change_holder(before, result, holder, takes=takes)
        count_change(change, result, before, use)
        if use.holders or use.shares:
            use_by_device[result.device] = use
        holders = (
            holders.with_item(key, use_by_device)
            if use_by_device
            else holders.without(key)
        )
    if not pools:
        return inventory
    held = with_change(inventory.held, change)
    changed = structs.replace(inventory, holders=holders, held=held)
    return with_uses(changed.with_grown(*list_freed(change)), pools)


def _list_results(
    allocations: Iterable[AllocationResult],
) -> list[DeviceRequestAllocationResult]:
    return [
        result
        for allocation in allocations
        for result in allocation.devices.results
        if not result.admin_access
    ]
