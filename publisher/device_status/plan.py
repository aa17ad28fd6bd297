"""(allocated claim, health of its devices) -> conditions of `status.devices`.

Only devices that are or were not healthy get a condition: a healthy one needs no
write. What other writers say of a device is theirs and stays. Pure; the claim's other
entries are the API server's to merge (server-side apply).

Source: resource.k8s.io/v1 AllocatedDeviceStatus (KEP-4817).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from contracts.allocation import DeviceRequestAllocationResult
from contracts.claim import ResourceClaim
from contracts.ids import DeviceName, PoolID
from contracts.messages import DeviceHealth

READY = "Ready"
_HEALTHY, _UNHEALTHY, _UNKNOWN = "Healthy", "Unhealthy", "HealthUnknown"
_REASONS = frozenset({_HEALTHY, _UNHEALTHY, _UNKNOWN})
_FIELDS = ("type", "status", "reason", "message", "lastTransitionTime")
_LONGEST = 1024
_AGAIN = "The device is healthy again."

SickOf = Callable[[PoolID], Mapping[DeviceName, DeviceHealth] | None]
"""The devices of a pool that are not healthy; None: no agent of ours announces it."""
Entry = dict[str, Any]
"""One entry of `status.devices`, as JSON."""


def plan_device_status(
    claim: ResourceClaim, sick_of: SickOf, now: str
) -> tuple[Entry, ...] | None:
    """Give all entries that are ours; None: they are as they should be.

    `now` is RFC 3339, whole seconds.
    """
    status = claim.status
    if status is None or status.allocation is None:
        return None
    known = {_key(entry): entry for entry in status.devices if isinstance(entry, dict)}
    wanted: dict[tuple[Any, ...], Entry] = {}
    news = False
    for result in status.allocation.devices.results:
        identity = _identity(result)
        key = _key(identity)
        before = _condition(known.get(key))
        after = _wanted(result, sick_of, before, now)
        if after is not None:
            news = news or after != before
            wanted[key] = {**identity, "conditions": [after]}
    return tuple(wanted.values()) if news else None


def _wanted(
    result: DeviceRequestAllocationResult,
    sick_of: SickOf,
    before: Entry | None,
    now: str,
) -> Entry | None:
    """Give the condition that one device should have from us; None: none."""
    ours = before is not None and before.get("reason") in _REASONS
    sick = sick_of(PoolID(result.driver, result.pool))
    if sick is None:
        return before if ours else None
    item = sick.get(result.device)
    if item is None:
        if not ours:
            return None
        status, reason, message = "True", _HEALTHY, _AGAIN
    elif item.verdict == _UNHEALTHY:
        status, reason, message = "False", _UNHEALTHY, item.message[:_LONGEST]
    else:
        status, reason, message = "Unknown", _UNKNOWN, item.message[:_LONGEST]
    since = now
    if before is not None and before.get("status") == status:
        since = before.get("lastTransitionTime") or now
    return {
        "type": READY,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def _condition(entry: Entry | None) -> Entry | None:
    """Find the condition in an entry; of its fields those that we write."""
    for condition in (entry or {}).get("conditions") or ():
        if isinstance(condition, dict) and condition.get("type") == READY:
            return {field: condition.get(field, "") for field in _FIELDS}
    return None


def _identity(result: DeviceRequestAllocationResult) -> Entry:
    identity = {"driver": result.driver, "pool": result.pool, "device": result.device}
    if result.share_id is not None:
        identity["shareID"] = result.share_id
    return identity


def _key(entry: Entry) -> tuple[Any, ...]:
    return tuple(entry.get(key) for key in ("driver", "pool", "device", "shareID"))
