"""Who holds a device of a pool, alone or in shares, and how many each namespace holds.

A device or a share may have two holders for a while (a decision of ours and the claim
it was written into), so holders are counted by name; for its namespace it counts once.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, structs

from contracts.allocation import DeviceRequestAllocationResult
from contracts.ids import DeviceName, DriverName, Namespace
from contracts.quantity import Quantity
from solver.snapshot.events import ClusterEvent, quota_event
from solver.snapshot.maps import FrozenMap


class Share(Struct, frozen=True):
    """One share of a device: who holds it, and what it consumes."""

    holders: frozenset[str]
    consumed: tuple[tuple[str, Quantity], ...]


class DeviceUse(Struct, frozen=True, kw_only=True):
    """Who holds a device: for itself, or in shares by their ids."""

    holders: frozenset[str] = frozenset()
    shares: dict[str, Share] = {}


Uses = dict[DeviceName, DeviceUse]
Held = FrozenMap[Namespace, dict[DriverName, int]]
"""Devices and shares, by namespace and driver; none is 0."""
Change = Counter[tuple[Namespace, DriverName]]


def change_holder(
    use: DeviceUse, result: DeviceRequestAllocationResult, holder: str, *, takes: bool
) -> DeviceUse:
    """Let a holder take the device of a result, or give it back."""
    if result.share_id is None:
        holders = _with_or_without(use.holders, holder, takes=takes)
        return structs.replace(use, holders=holders)
    return structs.replace(use, shares=_change_share(use, result, holder, takes=takes))


def _with_or_without(
    holders: frozenset[str], holder: str, *, takes: bool
) -> frozenset[str]:
    return holders | {holder} if takes else holders - {holder}


def _change_share(
    use: DeviceUse,
    result: DeviceRequestAllocationResult,
    holder: str,
    *,
    takes: bool,
) -> dict[str, Share]:
    """Count a share once, however many hold it: a decision, then its claim."""
    shares = dict(use.shares)
    share_id = result.share_id or ""
    share = shares.pop(share_id, None)
    holders = _with_or_without(
        share.holders if share else frozenset(), holder, takes=takes
    )
    if holders:
        amounts = tuple(sorted(result.consumed_capacity.items()))
        shares[share_id] = Share(holders, share.consumed if share else amounts)
    return shares


def sum_consumed(use: DeviceUse) -> tuple[tuple[str, Quantity], ...]:
    """Add up what the shares of a device consume; a negative amount gives no room.

    The API server takes any amount in a status.
    """
    total: dict[str, int] = {}
    for share in use.shares.values():
        for name, amount in share.consumed:
            total[name] = total.get(name, 0) + max(amount.nano, 0)
    return tuple((name, Quantity.of_nano(total[name])) for name in sorted(total))


def list_holders(use: DeviceUse) -> frozenset[str]:
    """List who holds a device, for itself or in shares."""
    return use.holders.union(*(share.holders for share in use.shares.values()))


# --- by namespace --------------------------------------------------------------------


def count_change(
    change: Change,
    result: DeviceRequestAllocationResult,
    before: DeviceUse,
    after: DeviceUse,
) -> None:
    """Count a device, or a share of it, for its new owners and off its old ones."""
    driver = result.driver
    for owner in _find_owners(after, result):
        change[owner, driver] += 1
    for owner in _find_owners(before, result):
        change[owner, driver] -= 1


def _find_owners(
    use: DeviceUse, result: DeviceRequestAllocationResult
) -> set[Namespace]:
    """Read the namespaces of a device's holders, or of a share's."""
    if result.share_id is None:
        holders = use.holders
    else:
        share = use.shares.get(result.share_id)
        holders = frozenset() if share is None else share.holders
    return {Namespace(holder.split("/", 2)[1]) for holder in holders}


def list_freed(change: Change) -> list[ClusterEvent]:
    """List the events of namespaces that hold less."""
    less = {namespace for (namespace, _), count in change.items() if count < 0}
    return [quota_event(namespace) for namespace in sorted(less)]


def with_change(held: Held, change: Change) -> Held:
    """Add the changes to what namespaces hold."""
    for (namespace, driver), difference in change.items():
        if not difference:
            continue
        counts = dict(held.get(namespace) or {})
        counts[driver] = counts.get(driver, 0) + difference
        counts = {name: count for name, count in counts.items() if count}
        held = held.with_item(namespace, counts) if counts else held.without(namespace)
    return held
