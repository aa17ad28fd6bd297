"""How many devices each namespace holds, counted as their holders come and go.

A device that is held by a decision and by the claim it was written into counts once;
so does each share of a device. Pure.
"""

from __future__ import annotations

from collections import Counter

from contracts.allocation import DeviceRequestAllocationResult
from contracts.ids import DriverName, Namespace
from solver.snapshot.device_uses import DeviceUse
from solver.snapshot.events import ClusterEvent, quota_event
from solver.snapshot.maps import FrozenMap

Held = FrozenMap[Namespace, dict[DriverName, int]]
"""Devices and shares, by namespace and driver; none is 0."""
Change = Counter[tuple[Namespace, DriverName]]


def count_change(
    change: Change,
    result: DeviceRequestAllocationResult,
    before: DeviceUse,
    after: DeviceUse,
) -> None:
    """Note whose a device, or a share of it, was and whose it is."""
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
    """Count what changed."""
    for (namespace, driver), difference in change.items():
        if not difference:
            continue
        counts = dict(held.get(namespace) or {})
        counts[driver] = counts.get(driver, 0) + difference
        counts = {name: count for name, count in counts.items() if count}
        held = held.with_item(namespace, counts) if counts else held.without(namespace)
    return held
