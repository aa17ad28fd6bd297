"""What a use consumes of a capacity, as the judge computes it (KEP-5075)."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from contracts.device import CapacityRequestPolicyRange, Device, DeviceCapacity
from contracts.quantity import NANO, Quantity

MAX = 2**63 - 1


def consumed(
    device: Device, asked: dict[str, Quantity], *, fractional: bool
) -> dict[str, int] | None:
    """Compute 1e-9 units by capacity; None: the device does not allow it."""
    if not set(asked) <= set(device.capacity):
        return None
    found = {}
    for name, capacity in device.capacity.items():
        amount = _amount(capacity, asked.get(name), fractional=fractional)
        if amount is None or not 0 <= amount <= capacity.value.nano:
            return None
        found[name] = amount
    return found


def _amount(
    capacity: DeviceCapacity, asked: Quantity | None, *, fractional: bool
) -> int | None:
    policy = capacity.request_policy
    if policy is None:
        return capacity.value.nano if asked is None else asked.nano
    default = policy.default.nano if policy.default is not None else None
    span = policy.valid_range
    if asked is None:
        amount = capacity.value.nano if default is None else default
    elif span is not None and span.min is not None:
        rounded = _rounded(asked.nano, span, fractional=fractional)
        if rounded is None:
            return None
        amount = rounded
    else:
        larger = [v.nano for v in policy.valid_values or () if v.nano >= asked.nano]
        amount = larger[0] if larger else asked.nano
    if amount == default:
        return amount
    if span is not None:
        return amount if _within(amount, span, fractional=fractional) else None
    values = policy.valid_values or ()
    return amount if not values or amount in [v.nano for v in values] else None


def _rounded(
    asked: int, span: CapacityRequestPolicyRange, *, fractional: bool
) -> int | None:
    least = span.min.nano if span.min is not None else 0
    if asked < least or span.step is None:
        return max(asked, least)
    unit = _unit(span, fractional=fractional)
    if unit != NANO and asked % unit:
        return None
    first, step = ceil(Fraction(least, unit)), ceil(Fraction(span.step.nano, unit))
    if step <= 0 or (unit == NANO and asked > MAX * NANO):
        return None
    steps = ceil(Fraction(ceil(Fraction(asked, unit)) - first, step))
    value = first + steps * step
    return value * unit if value <= MAX else None


def _within(amount: int, span: CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    if span.max is not None and amount > span.max.nano:
        return False
    if span.step is None:
        return True
    unit = _unit(span, fractional=fractional)
    if span.min is None or (unit != NANO and amount % unit):
        return False
    step = ceil(Fraction(span.step.nano, unit))
    first = ceil(Fraction(span.min.nano, unit))
    return step > 0 and (ceil(Fraction(amount, unit)) - first) % step == 0


def _unit(span: CapacityRequestPolicyRange, *, fractional: bool) -> int:
    """Say in which units a range counts: whole ones, or thousandths."""
    milli = NANO // 1000
    limits = [q.nano for q in (span.min, span.max, span.step) if q is not None]
    exact = all(v % milli == 0 and abs(v) <= MAX * milli for v in limits)
    positive = span.step is None or span.step.nano >= milli
    return milli if fractional and exact and positive else NANO
