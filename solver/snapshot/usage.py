"""Who holds which devices: decided gangs and allocated claims.

A device with a holder is taken; one with shares has less capacity left. A device or a
share may have two holders for a while (a decision of ours and the claim it was written
into), so holders are counted by name. Allocations with admin access take nothing
(KEP-5018).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from contracts.allocation import AllocationResult, DeviceRequestAllocationResult
from solver.snapshot.inventory import Inventory, with_uses
from solver.snapshot.parts import pool_key
from solver.snapshot.uses import DeviceUse, Share


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
    for result in _results(allocations):
        key = pool_key(result.driver, result.pool)
        pools.add(key)
        held = dict(holders.get(key) or {})
        use = held.pop(result.device, DeviceUse())
        if result.share_id is None:
            use = structs.replace(use, holders=_with(use.holders, holder, takes=takes))
        else:
            use = structs.replace(use, shares=_shares(use, result, holder, takes=takes))
        if use.holders or use.shares:
            held[result.device] = use
        holders = holders.with_item(key, held) if held else holders.without(key)
    if not pools:
        return inventory
    return with_uses(structs.replace(inventory, holders=holders), pools)


def _with(holders: frozenset[str], holder: str, *, takes: bool) -> frozenset[str]:
    return holders | {holder} if takes else holders - {holder}


def _shares(
    use: DeviceUse,
    result: DeviceRequestAllocationResult,
    holder: str,
    *,
    takes: bool,
) -> dict[str, Share]:
    """Count a share once, however many hold it: a decision, then its claim."""
    shares = dict(use.shares)
    share_id = result.share_id or ""
    known = shares.pop(share_id, None)
    holders = _with(known.holders if known else frozenset(), holder, takes=takes)
    if holders:
        amounts = tuple(sorted(result.consumed_capacity.items()))
        shares[share_id] = Share(holders, known.consumed if known else amounts)
    return shares


def _results(
    allocations: Iterable[AllocationResult],
) -> list[DeviceRequestAllocationResult]:
    return [
        result
        for allocation in allocations
        for result in allocation.devices.results
        if not result.admin_access
    ]
