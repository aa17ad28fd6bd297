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

UnhealthyOf = Callable[[PoolID], Mapping[DeviceName, DeviceHealth] | None]
"""The devices of a pool that are not healthy; None: no agent of ours announces it."""
Entry = dict[str, Any]
"""One entry of `status.devices`, as JSON."""


def plan_device_status(
    claim: ResourceClaim, unhealthy_of: UnhealthyOf, now: str
) -> tuple[Entry, ...] | None:
    """Return all entries that should be ours; None: they are as they should be.

    `now` is RFC 3339, whole seconds.
    """
    status = claim.status
    if status is None or status.allocation is None:
        return None
    entries_by_key = {
        _key_of_entry(entry): entry
        for entry in status.devices
        if isinstance(entry, dict)
    }
    ours: dict[tuple[Any, ...], Entry] = {}
    news = False
    for result in status.allocation.devices.results:
        identity = _identity_of_device(result)
        key = _key_of_entry(identity)
        old = _condition_of(entries_by_key.get(key))
        new = _build_condition(result, unhealthy_of, old, now)
        if new is not None:
            news = news or new != old
            ours[key] = {**identity, "conditions": [new]}
    return tuple(ours.values()) if news else None


def _build_condition(
    result: DeviceRequestAllocationResult,
    unhealthy_of: UnhealthyOf,
    old: Entry | None,
    now: str,
) -> Entry | None:
    """Return the condition that one device should have from us; None: none.

    `old` is the one that it has, whoever wrote it.
    """
    ours = old is not None and old.get("reason") in _REASONS
    unhealthy = unhealthy_of(PoolID(result.driver, result.pool))
    if unhealthy is None:
        # No agent of ours speaks for the pool: what was said stays.
        return old if ours else None
    health = unhealthy.get(result.device)
    if health is None:
        if not ours:
            return None
        status, reason, message = "True", _HEALTHY, _AGAIN
    elif health.verdict == _UNHEALTHY:
        status, reason, message = "False", _UNHEALTHY, _describe(health)
    else:
        status, reason, message = "Unknown", _UNKNOWN, _describe(health)
    since = now
    if old is not None and old.get("status") == status:
        since = old.get("lastTransitionTime") or now
    return {
        "type": READY,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def _describe(health: DeviceHealth) -> str:
    """Return the agent's message, after the code of it, if there is one."""
    code = f"{health.reason}: " if health.reason else ""
    return f"{code}{health.message}"[:_LONGEST]


def _condition_of(entry: Entry | None) -> Entry | None:
    """Find the condition in an entry; of its fields those that we write."""
    for condition in (entry or {}).get("conditions") or ():
        if isinstance(condition, dict) and condition.get("type") == READY:
            return {field: condition.get(field, "") for field in _FIELDS}
    return None


def _identity_of_device(result: DeviceRequestAllocationResult) -> Entry:
    identity = {"driver": result.driver, "pool": result.pool, "device": result.device}
    if result.share_id is not None:
        identity["shareID"] = result.share_id
    return identity


def _key_of_entry(entry: Entry) -> tuple[Any, ...]:
    return tuple(entry.get(key) for key in ("driver", "pool", "device", "shareID"))
