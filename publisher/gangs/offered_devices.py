"""Devices that ResourceSlices offer, and claims that hold devices which none offers.

A driver may withdraw a device in use: it broke, or was pulled. Of an incomplete pool
nothing is reported: kubelet deletes the slices of a node when it starts, and the driver
makes them again one by one. Only names are kept of slices. Knows no plan.

Source: KEP-4381, pool generations and resourceSliceCount.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from contracts.claim import ResourceClaim
from contracts.ids import DeviceID, DeviceName, DriverName, PoolID, PoolName


class OfferedSlice(Struct, frozen=True):
    """The part of a pool that one slice offers."""

    pool: PoolID
    generation: int
    slice_count: int
    devices: frozenset[DeviceName]


class OfferedDevices:
    """Slices by name and pool, and the claims that hold devices of each pool."""

    def __init__(self) -> None:
        self._slices: dict[str, OfferedSlice] = {}
        self._names: dict[PoolID, set[str]] = {}
        """Of slices."""
        self._claims: dict[PoolID, set[str]] = {}
        """Keys of the claims that hold devices of a pool."""
        self._devices: dict[PoolID, frozenset[DeviceName] | None] = {}
        """What whole pools offer, as far as anybody asked."""

    def missing(self, claim: ResourceClaim) -> tuple[DeviceID, ...]:
        """Name the devices of a claim that their complete pools no longer offer."""
        missing = (
            device
            for device in _devices_of(claim)
            if (names := self._list_offered(device.pool_id)) is not None
            and device.device not in names
        )
        return tuple(sorted(missing))

    def apply_slice(self, name: str, offered: OfferedSlice | None) -> frozenset[str]:
        """Take a slice in (None: it is gone); returns the claims it is about, by key.

        They are those with devices of a pool that offers others now.
        """
        before = self._slices.get(name)
        pools = {
            one.pool: self._list_offered(one.pool) for one in (before, offered) if one
        }
        for pool in pools:
            self._devices.pop(pool, None)
        if before is not None:
            del self._slices[name]
            _discard_name(self._names, before.pool, name)
        if offered is not None:
            self._slices[name] = offered
            self._names.setdefault(offered.pool, set()).add(name)
        changed = [
            pool for pool, had in pools.items() if self._list_offered(pool) != had
        ]
        return frozenset(key for pool in changed for key in self._claims.get(pool, ()))

    def note_claim(
        self, key: str, before: ResourceClaim | None, after: ResourceClaim | None
    ) -> None:
        """Take in what a claim holds now (None: it is not there)."""
        for pool in _pools_of(before):
            _discard_name(self._claims, pool, key)
        for pool in _pools_of(after):
            self._claims.setdefault(pool, set()).add(key)

    def _list_offered(self, pool: PoolID) -> frozenset[DeviceName] | None:
        """Return the devices of a pool; None: not all of its slices are there."""
        if pool not in self._names:
            return None
        if pool not in self._devices:
            self._devices[pool] = self._read_offered(pool)
        return self._devices[pool]

    def _read_offered(self, pool: PoolID) -> frozenset[DeviceName] | None:
        slices = [self._slices[name] for name in self._names[pool]]
        newest = max(one.generation for one in slices)
        current = [one for one in slices if one.generation == newest]
        if {one.slice_count for one in current} != {len(current)}:
            return None
        return frozenset[DeviceName]().union(*(one.devices for one in current))


def read_offered(raw: Mapping[str, Any]) -> OfferedSlice | None:
    """Read a ResourceSlice of any served version; None: it is malformed."""
    try:
        spec = raw["spec"]
        pool = spec["pool"]
        return OfferedSlice(
            pool=PoolID(DriverName(spec["driver"]), PoolName(pool["name"])),
            generation=int(pool.get("generation") or 0),
            slice_count=int(pool["resourceSliceCount"]),
            devices=frozenset(
                DeviceName(device["name"]) for device in spec.get("devices") or ()
            ),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _discard_name(names: dict[PoolID, set[str]], pool: PoolID, name: str) -> None:
    of_pool = names[pool]
    of_pool.discard(name)
    if not of_pool:
        del names[pool]


def _devices_of(claim: ResourceClaim | None) -> set[DeviceID]:
    """Return the devices that a claim holds, alone or with others."""
    held = None if claim is None else claim.allocation
    return set() if held is None else {one.device_id for one in held.devices.results}


def _pools_of(claim: ResourceClaim | None) -> set[PoolID]:
    return {device.pool_id for device in _devices_of(claim)}
