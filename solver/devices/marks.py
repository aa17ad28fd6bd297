"""Devices of a pool with something that most lack, found once for each pool.

Most devices draw from no counters, have no taints, bind nothing and give all they have
to one use. Whoever must look at such things device by device looks at these alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from contracts.device import Device
from solver.cache import Slot
from solver.snapshot.parts import Part, PoolPart


class Marks(Struct, frozen=True):
    """Sets of devices are bits, in pool order."""

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


_NONE = Marks()
_MARKS: Slot[Marks] = Slot()


def marks_of(part: Part) -> Marks:
    """Find the marked devices of a pool.

    Raises:
        TypeError: the part is no pool.
    """
    known = _MARKS.get(part.memory)
    if known is None:
        if not isinstance(part.value, PoolPart):
            raise TypeError(part.key)
        known = _MARKS.keep(part.memory, _marks(part.value.devices))
    return known


def _marks(devices: Iterable[Device]) -> Marks:
    counting = binding = says_binding = tainted = metered = 0
    for index, device in enumerate(devices):
        if device.consumes_counters:
            counting |= 1 << index
        if device.binding_conditions is not None:
            says_binding |= 1 << index
            binding |= bool(device.binding_conditions) << index
        if device.taints:
            tainted |= 1 << index
        for capacity in device.capacity.values():
            if capacity.request_policy is not None or capacity.value.nano < 0:
                metered |= 1 << index
    if not (counting or says_binding or tainted or metered):
        return _NONE
    return Marks(counting, binding, says_binding, tainted, metered)
