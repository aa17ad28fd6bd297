"""What is known of a pool's devices whatever is asked: names, marks, faults.

Most pools of a cluster are made alike: their devices have the same names, and none has
anything that most lack. Such pools share one `PoolFacts`, so that what follows from it
is found once. Read from the part, once, and remembered there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from contracts.device import Device
from contracts.ids import DeviceName, DriverName
from solver.cache import Cache, Slot
from solver.selectors.projection import find_faults
from solver.snapshot.parts import Part, PoolPart


class Marks(Struct, frozen=True, cache_hash=True):
    """Devices of a pool with features that most lack; bits, in pool order.

    Most devices draw from no counters, have no taints, bind nothing and give all they
    have to one use. Code that must look at such things looks at these alone.
    """

    counting: int = 0
    """They draw from counters."""
    binding: int = 0
    """They have binding conditions."""
    says_binding: int = 0
    """They say something about binding conditions, be it that there are none."""
    tainted: int = 0
    """Their slices taint them."""
    metered: int = 0
    """One use that asks for no amounts may consume less than all, or cannot be had."""
    shareable: int = 0
    """Several claims may have them at once."""
    negative: int = 0
    """They draw a negative amount of a counter and may not be allocated."""

    @property
    def has_amounts(self) -> bool:
        """True if amounts of some device matter even to requests without capacity."""
        return bool(self.metered or self.shareable)

    @property
    def has_others(self) -> bool:
        """True if any device has something besides amounts."""
        return bool(self.counting or self.says_binding or self.tainted)


NO_MARKS = Marks()


class PoolFacts(Struct, frozen=True, eq=False):
    """What pools that are made alike have in common; compared by identity."""

    driver: DriverName
    names: tuple[DeviceName, ...]
    """Of all devices, of every slice and generation."""
    bits_by_name: Mapping[DeviceName, int]
    """The devices of each name, as bits: one, unless slices share it."""
    marks: Marks
    faults: Mapping[int, str]
    """Why any selector fails on a device, by index."""

    @property
    def has_unique_names(self) -> bool:
        """True if no two devices share a name, in whatever slice or generation."""
        return len(self.bits_by_name) == len(self.names)

    @property
    def all_devices(self) -> int:
        """The set of all devices."""
        return (1 << len(self.names)) - 1


MOST_FACTS = 4096
"""Pools that are not made alike, of which so many are known to be."""
_FACTS: Slot[PoolFacts] = Slot()
"""By part of a pool."""
_ALIKE: Cache[tuple[object, ...], PoolFacts] = Cache(MOST_FACTS)
"""By content, so that pools made alike share one."""


def pool_of(part: Part) -> PoolPart:
    """Read the pool of a part that is known to hold one.

    Raises:
        TypeError: the part is no pool.
    """
    if not isinstance(part.value, PoolPart):
        raise TypeError(part.key)
    return part.value


def facts_of(part: Part) -> PoolFacts:
    """Read what is known of a pool's devices.

    Raises:
        TypeError: the part is no pool.
    """
    facts = _FACTS.get(part.memory)
    if facts is None:
        facts = _FACTS.keep(part.memory, _read_facts(pool_of(part)))
    return facts


def marks_of(part: Part) -> Marks:
    """Find the marked devices of a pool.

    Raises:
        TypeError: the part is no pool.
    """
    return facts_of(part).marks


def _read_facts(pool: PoolPart) -> PoolFacts:
    devices = pool.devices
    names = tuple([device.name for device in devices])
    marks, faults = _mark_devices(devices), find_faults(devices)
    key = (pool.driver, names, marks, *faults.items())
    facts = _ALIKE.get(key)
    if facts is None:
        facts = PoolFacts(pool.driver, names, _number_names(names), marks, faults)
        _ALIKE.keep(key, facts)
    return facts


def _number_names(names: Iterable[DeviceName]) -> dict[DeviceName, int]:
    bits: dict[DeviceName, int] = {}
    for index, name in enumerate(names):
        bits[name] = bits.get(name, 0) | 1 << index
    return bits


def _mark_devices(devices: Sequence[Device]) -> Marks:
    # Nearly all have none of it, which one look at all of them shows.
    for device in devices:
        if (
            device.consumes_counters
            or device.taints
            or device.allow_multiple_allocations
            or device.binding_conditions is not None
        ):
            return _mark_each(devices)
        for capacity in device.capacity.values():
            if capacity.request_policy is not None or capacity.value.nano < 0:
                return _mark_each(devices)
    return NO_MARKS


def _mark_each(devices: Iterable[Device]) -> Marks:
    counting = binding = says_binding = tainted = metered = shareable = negative = 0
    for index, device in enumerate(devices):
        if device.consumes_counters:
            counting |= 1 << index
            negative |= draws_negative(device) << index
        if device.binding_conditions is not None:
            says_binding |= 1 << index
            binding |= bool(device.binding_conditions) << index
        if device.taints:
            tainted |= 1 << index
        if device.allow_multiple_allocations:
            shareable |= 1 << index
        for capacity in device.capacity.values():
            if capacity.request_policy is not None or capacity.value.nano < 0:
                metered |= 1 << index
    return Marks(counting, binding, says_binding, tainted, metered, shareable, negative)


def draws_negative(device: Device) -> bool:
    """True if a device draws a negative amount, which the API server accepts."""
    return any(
        counter.value.nano < 0
        for consumption in device.consumes_counters
        for counter in consumption.counters.values()
    )
