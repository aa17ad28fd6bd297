"""Traits: what tells a device apart for this batch besides what it may serve.

Shares that several requests may have, counters that it draws from, groups that must
agree. A plain device has none, and most devices are plain.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from contracts.device import Device, DeviceCapacity, DeviceCounterConsumption
from contracts.features import Features
from contracts.ids import DeviceName
from contracts.quantity import Quantity
from solver.cache import Slots, cached
from solver.devices.candidates import (
    indices_of,
    is_shareable,
    shares_of,
    spell_shares,
    sum_shares,
)
from solver.devices.capacity_amounts import compute_consumed, domain_of
from solver.devices.facts import pool_of
from solver.devices.pool_projections import MOST_LISTS
from solver.devices.pools import PoolView
from solver.errors import AmountError
from solver.kinds.query import Query, RequestKind
from solver.snapshot.parts import Part

CounterKey = tuple[str, str, str, str]
"""(driver, pool, counter set, counter)."""
Amounts = tuple[tuple[str, int], ...]
"""(capacity, 1e-9 units) that a request asks for."""


class Traits(Struct, frozen=True, cache_hash=True):
    """What uses of a device cost besides the device."""

    left: tuple[int, ...] | None = None
    """1e-9 units of each capacity that shares may still have; None: not shareable."""
    costs: tuple[tuple[int, ...], ...] = ()
    """What one share consumes of each capacity, by request kind."""
    draws: tuple[tuple[int, int], ...] = ()
    """(index into the node's counters, 1e-9 units), charged once."""
    groups: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """(index into the node's counter sets, compatibility groups)."""


PLAIN = Traits()


class Counters:
    """The counters that a node's pools define, and what is left of them."""

    def __init__(self) -> None:
        self.keys: dict[CounterKey, int] = {}
        self.left: list[int] = []
        self.sets: dict[tuple[str, str, str], int] = {}
        self.allowed: list[tuple[str, ...] | None] = []
        """Groups that the devices in use leave for each counter set; None: any."""
        self.owners: list[tuple[str, ...]] = []
        """Identity of each counter that several nodes see; empty: the node's own."""
        self.set_owners: list[tuple[str, ...]] = []
        """By counter set, as those of counters."""
        self.unknown: list[DeviceName] = []
        """Devices in use whose draw is unknown."""

    def add(self, view: PoolView) -> bool:
        """Add the counters of a pool; False: no device may draw from them.

        One of them is overdrawn already, or it is not known what others draw.
        """
        if not view.counters:
            return True
        is_own = bool(pool_of(view.part).node)
        for counter_set in view.counters:
            place = (view.driver, view.pool, counter_set.name)
            self.sets[place] = len(self.allowed)
            self.allowed.append(None)
            self.set_owners.append(() if is_own else place)
            for name in sorted(counter_set.counters):
                key = (view.driver, view.pool, counter_set.name, name)
                self.keys[key] = len(self.left)
                self.left.append(counter_set.counters[name].value.nano)
                self.owners.append(() if is_own else key)
        start = len(self.left) - sum(
            len(counter_set.counters) for counter_set in view.counters
        )
        in_use, unknown = _list_in_use(view)
        self.unknown += unknown
        for consumption in in_use:
            self._charge_counters(view, consumption)
        return not unknown and all(amount >= 0 for amount in self.left[start:])

    def _charge_counters(
        self, view: PoolView, consumption: DeviceCounterConsumption
    ) -> None:
        place = (view.driver, view.pool, consumption.counter_set)
        if place not in self.sets:
            return
        for name, counter in consumption.counters.items():
            self.left[self.keys[*place, name]] -= max(counter.value.nano, 0)
        number = self.sets[place]
        allowed, groups = self.allowed[number], consumption.compatibility_groups or ()
        if allowed is None:
            self.allowed[number] = tuple(sorted(groups)) or NO_GROUPS
        elif allowed != NO_GROUPS and groups:
            self.allowed[number] = tuple(g for g in allowed if g in groups)

    def draws(self, view: PoolView, device: Device) -> tuple[tuple[int, int], ...]:
        """List what a device draws."""
        return tuple(
            sorted(
                (
                    self.keys[
                        view.driver,
                        view.pool,
                        consumption.counter_set,
                        name,
                    ],
                    counter.value.nano,
                )
                for consumption in device.consumes_counters
                for name, counter in consumption.counters.items()
            )
        )

    def groups(
        self, view: PoolView, device: Device
    ) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """List the groups of a device by counter set."""
        return tuple(
            (
                self.sets[view.driver, view.pool, consumption.counter_set],
                tuple(sorted(consumption.compatibility_groups or ())) or NO_GROUPS,
            )
            for consumption in device.consumes_counters
        )


NO_GROUPS = ("",)
"""In place of groups: a device that names none goes only with others like it."""


def _list_in_use(
    view: PoolView,
) -> tuple[list[DeviceCounterConsumption], list[DeviceName]]:
    """List what devices in use draw; and those of which it is unknown.

    A device that the pool has no more counts as an older slice says that is still
    there, or else as was remembered.
    """
    if view.use is None:
        return [], []
    drawn, unknown = list[DeviceCounterConsumption](), []
    current = view.targeting | view.elsewhere
    remembered = {each.device: each for each in view.use.unpublished}
    for name in sorted({*view.use.taken, *(s.device for s in view.use.shared)}):
        bits = view.facts.bits_by_name.get(name, 0)
        published = list(indices_of(bits & current or bits))
        if bits & current:
            for index in published:
                drawn += view.devices[index].consumes_counters
        elif published:
            drawn += view.devices[published[-1]].consumes_counters
        elif name in remembered and remembered[name].consumes_counters is not None:
            drawn += remembered[name].consumes_counters or ()
        else:
            unknown.append(name)
    return drawn, unknown


def is_plain(device: Device) -> bool:
    """True if uses of a device cost nothing but the device."""
    return not (device.consumes_counters or device.allow_multiple_allocations)


def traits_of(
    view: PoolView,
    device: Device,
    counters: Counters,
    query: Query,
    features: Features,
) -> Traits:
    """Find the traits of a device."""
    left: tuple[int, ...] | None = None
    costs: tuple[tuple[int, ...], ...] = ()
    shares = shares_of(view, device, view.use, features)
    if is_shareable(device, features):
        names = sorted(device.capacity)
        left = tuple(
            device.capacity[name].value.nano - (shares or {}).get(name, 0)
            for name in names
        )
        costs = _list_costs(
            tuple(device.capacity.items()),
            query,
            features.fractional_capacity_range,
            domain_of(view.driver, features),
        )
    if not device.consumes_counters or (left is not None and shares is not None):
        return Traits(left=left, costs=costs)
    return Traits(
        left=left,
        costs=costs,
        draws=counters.draws(view, device),
        groups=(counters.groups(view, device) if features.compatibility_groups else ()),
    )


def find_drawing(view: PoolView, features: Features) -> int:
    """Find the devices that would draw from counters; those with shares already do."""
    shares = sum_shares(view.use)
    return sum(
        1 << index
        for index in indices_of(view.targeting & view.facts.marks.counting)
        for device in (view.devices[index],)
        if not (device.name in shares and is_shareable(device, features))
    )


def find_targets(
    view: PoolView, chosen: int, kind: RequestKind, features: Features
) -> int:
    """Find the devices that a request means; `All` must have all of them."""
    bits, marks = view.reachable & chosen, view.facts.marks
    if features.partitionable_devices:
        bits &= ~marks.negative
    if not features.device_binding:
        bits &= ~marks.binding
    # One use that asks for no amounts has all of whatever is not metered.
    if features.consumable_capacity and (kind.capacity or bits & marks.metered):
        bits &= _find_large(view.part, kind.capacity, features)
    return bits


def find_with_room(
    view: PoolView, chosen: int, kind: RequestKind, features: Features
) -> int:
    """Narrow devices to those whose capacity, less what shares consume, is enough."""
    if view.use is None or not features.consumable_capacity:
        return chosen
    for share in view.use.shared:
        bits = view.facts.bits_by_name.get(share.device, 0) & chosen
        if bits and share.consumed:
            consumed = {name: amount.nano for name, amount in share.consumed}
            domain = domain_of(view.driver, features)
            amounts = _list_amounts(view.part, kind.capacity, features)
            for index in indices_of(bits):
                device = view.devices[index]
                used = spell_shares(consumed, device, domain)
                if not _is_large_enough(device, used, amounts[index]):
                    chosen &= ~(1 << index)
    return chosen


_Asked = tuple[Amounts, bool, bool]


def _key_of(requested: Amounts, features: Features) -> _Asked:
    """Return all that amounts depend on besides the pool."""
    return (
        requested,
        features.fractional_capacity_range,
        features.rules_of_138,
    )


_AMOUNTS: Slots[_Asked, tuple[Mapping[str, int] | None, ...]] = Slots(MOST_LISTS)
"""By part of a pool: what one use would consume of each device."""
_LARGE: Slots[_Asked, int] = Slots(MOST_LISTS)
"""By part of a pool: the devices that have what is asked for, while all are free."""


def _find_large(part: Part, requested: Amounts, features: Features) -> int:
    """Find the devices of a pool that one use may have, by amounts alone."""
    large = _LARGE.of(part.memory)
    key = _key_of(requested, features)
    bits = large.get(key)
    if bits is None:
        amounts = _list_amounts(part, requested, features)
        fitting = [
            1 << index
            for index, device in enumerate(pool_of(part).devices)
            if _is_large_enough(device, {}, amounts[index])
        ]
        bits = large.keep(key, sum(fitting))
    return bits


def _list_amounts(
    part: Part, requested: Amounts, features: Features
) -> tuple[Mapping[str, int] | None, ...]:
    """List what one use would consume of each device; None: it cannot be had."""
    results = _AMOUNTS.of(part.memory)
    key = _key_of(requested, features)
    amounts = results.get(key)
    if amounts is None:
        found = [
            costs_of(device, requested, features, pool_of(part).driver)
            if requested or device.capacity
            else {}
            for device in pool_of(part).devices
        ]
        amounts = results.keep(key, tuple(found))
    return amounts


def _is_large_enough(
    device: Device, used: Mapping[str, int], amounts: Mapping[str, int] | None
) -> bool:
    return amounts is not None and all(
        used.get(name, 0) + amount <= device.capacity[name].value.nano
        for name, amount in amounts.items()
    )


@cached(bound=4096)
def _list_costs(
    capacities: tuple[tuple[str, DeviceCapacity], ...],
    query: Query,
    fractional: bool,
    domain: str,
) -> tuple[tuple[int, ...], ...]:
    """List what a share for each kind of request consumes of capacities, by name."""
    names = sorted(name for name, _ in capacities)
    costs = (
        _compute_costs(capacities, kind.capacity, fractional, domain)
        for kind in query.requests
    )
    return tuple(
        () if amounts is None else tuple([amounts.get(name, 0) for name in names])
        for amounts in costs
    )


def costs_of(
    device: Device, capacity: Amounts, features: Features, driver: str
) -> dict[str, int] | None:
    """Compute what one use consumes of each capacity; None: it cannot be had."""
    return _compute_costs(
        tuple(device.capacity.items()),
        capacity,
        features.fractional_capacity_range,
        domain_of(driver, features),
    )


@cached(bound=1 << 14)
def _compute_costs(
    capacities: tuple[tuple[str, DeviceCapacity], ...],
    requested: Amounts,
    fractional: bool,
    domain: str,
) -> dict[str, int] | None:
    """Compute the costs, once for all devices of equal capacity."""
    amounts = {name: Quantity.of_nano(amount) for name, amount in requested}
    try:
        consumed = compute_consumed(
            dict(capacities), amounts, fractional=fractional, domain=domain
        )
    except AmountError:
        return None
    return None if consumed is None else {n: q.nano for n, q in consumed.items()}
