"""Who holds the devices of a pool, alone or in shares."""

from __future__ import annotations

from msgspec import Struct

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
