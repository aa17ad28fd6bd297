"""Who holds which devices: decided gangs and allocated claims.

A device with a holder is taken. One device may have two holders for a while (a
decision of ours and the claim it was written into), so holders are counted by name.
Allocations with admin access take nothing (KEP-5018).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from contracts.allocation import AllocationResult
from contracts.ids import DeviceID
from solver.snapshot.inventory import Inventory, with_uses
from solver.snapshot.parts import pool_key


def with_holder(
    inventory: Inventory, holder: str, allocations: Iterable[AllocationResult]
) -> Inventory:
    """Let the holder take the devices of its allocations."""
    return _changed(inventory, holder, allocations, takes=True)


def without_holder(
    inventory: Inventory, holder: str, allocations: Iterable[AllocationResult]
) -> Inventory:
    """Let the holder give the devices of its allocations back."""
    return _changed(inventory, holder, allocations, takes=False)


def _changed(
    inventory: Inventory,
    holder: str,
    allocations: Iterable[AllocationResult],
    *,
    takes: bool,
) -> Inventory:
    holders, pools = inventory.holders, set()
    for device in _devices(allocations):
        key = pool_key(device.driver, device.pool)
        pools.add(key)
        held = dict(holders.get(key) or {})
        names = held.pop(device.device, frozenset())
        names = names | {holder} if takes else names - {holder}
        if names:
            held[device.device] = names
        holders = holders.with_item(key, held) if held else holders.without(key)
    if not pools:
        return inventory
    return with_uses(structs.replace(inventory, holders=holders), pools)


def _devices(allocations: Iterable[AllocationResult]) -> list[DeviceID]:
    return [
        result.device_id
        for allocation in allocations
        for result in allocation.devices.results
        if not result.admin_access
    ]
