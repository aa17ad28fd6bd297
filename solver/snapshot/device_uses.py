"""Who holds a device of a pool, alone or in shares.

A device or a share may have two holders for a while (a decision of ours and the claim
it was written into), so holders are counted by name.
"""

from __future__ import annotations

from msgspec import Struct, structs

from contracts.allocation import DeviceRequestAllocationResult
from contracts.ids import DeviceName
from contracts.quantity import Quantity


class Share(Struct, frozen=True):
    """One share of a device: who holds it, and what it consumes."""

    holders: frozenset[str]
    consumed: tuple[tuple[str, Quantity], ...]


class DeviceUse(Struct, frozen=True, kw_only=True):
    """Who holds a device: for itself, or in shares by their ids."""

    holders: frozenset[str] = frozenset()
    shares: dict[str, Share] = {}


Uses = dict[DeviceName, DeviceUse]


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
