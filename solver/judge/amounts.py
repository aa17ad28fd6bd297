"""What a use consumes of a capacity, as the judge computes it (KEP-5075)."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from contracts.device import CapacityRequestPolicyRange, Device, DeviceCapacity
from contracts.features import Features
from contracts.quantity import NANO, Quantity

MAX = 2**63 - 1


def consumption_of(
    device: Device, requested: dict[str, Quantity], features: Features, driver: str
) -> dict[str, int] | None:
    """Compute 1e-9 units by capacity; None: the device does not allow it."""
    fractional = features.fractional_capacity_range
    if features.rules_of_138:
        if any(amount.nano < 0 for amount in requested.values()):
            return None
        found = {name: own_name(device, name, driver) for name in requested}
        if len(set(found.values())) < len(found):
            return None  # one capacity, asked for twice
        requested = {found[name]: amount for name, amount in requested.items()}
    if not requested.keys() <= device.capacity.keys():
        return None
    amounts = {}
    for name, capacity in device.capacity.items():
        if features.rules_of_138 and f"{driver}/{name}" in device.capacity:
            continue  # the long name of the same capacity counts
        amount: int | None = capacity.value.nano  # as mostly: all of it
        if requested or capacity.request_policy is not None:
            amount = _consumed_amount(
                capacity, requested.get(name), fractional=fractional
            )
        if amount is None or not 0 <= amount <= capacity.value.nano:
            return None
        amounts[name] = amount
    return amounts


def own_name(device: Device, name: str, driver: str) -> str:
    """Return how a device spells a capacity: with the driver's domain, if it can."""
    prefix = driver + "/"
    bare = name.removeprefix(prefix)
    if "/" not in bare:
        for spelled in (prefix + bare, bare):
            if spelled in device.capacity:
                return spelled
    return name


def shares_by_own_name(
    device: Device, shares: dict[str, int], features: Features, driver: str
) -> dict[str, int]:
    """Add up what shares consume by the device's names, however claims spell them."""
    if not features.rules_of_138:
        return shares
    total: dict[str, int] = {}
    for name, amount in shares.items():
        own = own_name(device, name, driver)
        total[own] = total.get(own, 0) + amount
    return total


def _consumed_amount(
    capacity: DeviceCapacity, requested: Quantity | None, *, fractional: bool
) -> int | None:
    policy = capacity.request_policy
    # Without a policy a request gets what it asks for, or all of it.
    if policy is None:
        return capacity.value.nano if requested is None else requested.nano
    default = policy.default.nano if policy.default is not None else None
    span = policy.valid_range
    # First the amount is rounded up to what the policy offers ...
    if requested is None:
        amount = capacity.value.nano if default is None else default
    elif span is not None and span.min is not None:
        rounded = _round_up(requested.nano, span, fractional=fractional)
        if rounded is None:
            return None
        amount = rounded
    else:
        larger = [v.nano for v in policy.valid_values or () if v.nano >= requested.nano]
        amount = larger[0] if larger else requested.nano
    # ... then it must be one that the policy allows; the default always is.
    if amount == default:
        return amount
    if span is not None:
        return amount if _is_within(amount, span, fractional=fractional) else None
    values = policy.valid_values or ()
    return amount if not values or amount in [v.nano for v in values] else None


def _round_up(
    requested: int, span: CapacityRequestPolicyRange, *, fractional: bool
) -> int | None:
    least = span.min.nano if span.min is not None else 0
    if requested < least or span.step is None:
        return max(requested, least)
    unit = _unit_of_range(span, fractional=fractional)
    if unit != NANO and requested % unit:
        return None
    first, step = ceil(Fraction(least, unit)), ceil(Fraction(span.step.nano, unit))
    if step <= 0 or (unit == NANO and requested > MAX * NANO):
        return None
    steps = ceil(Fraction(ceil(Fraction(requested, unit)) - first, step))
    value = first + steps * step
    return value * unit if value <= MAX else None


def _is_within(
    amount: int, span: CapacityRequestPolicyRange, *, fractional: bool
) -> bool:
    if span.max is not None and amount > span.max.nano:
        return False
    if span.step is None:
        return True
    unit = _unit_of_range(span, fractional=fractional)
    if span.min is None or (unit != NANO and amount % unit):
        return False
    step = ceil(Fraction(span.step.nano, unit))
    first = ceil(Fraction(span.min.nano, unit))
    return step > 0 and (ceil(Fraction(amount, unit)) - first) % step == 0


def _unit_of_range(span: CapacityRequestPolicyRange, *, fractional: bool) -> int:
    """Choose the units in which a range counts: whole ones, or thousandths."""
    milli = NANO // 1000
    limits = [q.nano for q in (span.min, span.max, span.step) if q is not None]
    exact = all(v % milli == 0 and abs(v) <= MAX * milli for v in limits)
    positive = span.step is None or span.step.nano >= milli
    return milli if fractional and exact and positive else NANO
