"""How much of a device's capacity a request consumes, and whether its policy allows it.

All amounts are exact integers of 1e-9 units. Where upstream computes in int64 and
gives up, this gives up too: such a request is an error, not a device that does not fit.

Source: KEP-5075; k8s.io/dynamic-resource-allocation/structured, consumable_capacity.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contracts.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from contracts.features import Features
from contracts.quantity import NANO, Quantity
from solver.errors import AmountError

_INT64_MAX = 2**63 - 1
_MILLI = NANO // 1000


def compute_consumed(
    capacities: Mapping[str, DeviceCapacity],
    requests: Mapping[str, Quantity],
    *,
    fractional: bool,
    domain: str = "",
) -> dict[str, Quantity] | None:
    """Compute what one use of a device consumes; None: the device cannot do it.

    `capacities` are those of the device; all are in the answer, asked for or not.
    `domain` may stand before a name or not (`domain_of`); of one capacity that a device
    names both ways the name with its domain counts.

    Raises:
        AmountError: an amount cannot be represented, or is negative.
    """
    if domain:
        requests = _spell_requests(capacities, requests, domain)
        capacities = {
            name: capacity
            for name, capacity in capacities.items()
            if f"{domain}/{name}" not in capacities
        }
    if any(name not in capacities for name in requests):
        return None
    amounts = {
        name: _consume_capacity(
            name, capacity, requests.get(name), fractional=fractional
        )
        for name, capacity in sorted(capacities.items())
    }
    for name, amount in amounts.items():
        policy = capacities[name].request_policy
        if policy is not None and _violates_policy(
            name, amount.nano, policy, fractional=fractional
        ):
            return None
    return amounts


def domain_of(driver: str, features: Features) -> str:
    """Return what may stand before names of capacities; empty: nothing may."""
    return driver if features.rules_of_138 else ""


def spell_as_device(
    names: Iterable[str], capacities: Iterable[str], domain: str
) -> dict[str, str]:
    """Map names of capacities to how a device names them, if it has them.

    Of two names of one capacity of a device the one with its domain counts.
    """
    own = {_qualify(name, domain): name for name in sorted(capacities, key=_is_long)}
    return {name: own.get(_qualify(name, domain), name) for name in names}


def _is_long(name: str) -> bool:
    return "/" in name


def _qualify(name: str, domain: str) -> str:
    return name if "/" in name else f"{domain}/{name}"


def _spell_requests(
    capacities: Iterable[str], requests: Mapping[str, Quantity], domain: str
) -> dict[str, Quantity]:
    """Name what is asked for as the device does.

    Raises:
        AmountError: one capacity is asked for in both spellings, or a negative amount.
    """
    asked: dict[str, Quantity] = {}
    for name, own in spell_as_device(requests, capacities, domain).items():
        if own in asked:
            raise AmountError(f'capacity "{own}" is asked for by two names')
        if requests[name].nano < 0:
            raise AmountError(f'capacity "{own}": capacity value is negative')
        asked[own] = requests[name]
    return asked


def _consume_capacity(
    name: str, capacity: DeviceCapacity, asked: Quantity | None, *, fractional: bool
) -> Quantity:
    policy = capacity.request_policy or CapacityRequestPolicy()
    if asked is None:
        amount = policy.default if policy.default is not None else capacity.value
    elif policy.valid_range is not None and policy.valid_range.min is not None:
        amount = _round_up(name, asked, policy.valid_range, fractional=fractional)
    elif policy.valid_values is not None:
        amount = next((v for v in policy.valid_values if asked <= v), asked)
    else:
        amount = asked
    if amount.nano < 0:
        raise AmountError(f'capacity "{name}": capacity value is negative')
    return amount


def _round_up(
    name: str,
    asked: Quantity,
    allowed: CapacityRequestPolicyRange,
    *,
    fractional: bool,
) -> Quantity:
    """Round up to the next step from the minimum."""
    least, step = allowed.min, allowed.step
    if least is None or asked < least:
        return least or asked
    if step is None:
        return asked
    milli = _is_milli(allowed, fractional=fractional)
    unit = _MILLI if milli else NANO
    if milli and asked.nano % unit:
        raise _refuse_amount(name, f"request {asked} is not a representable milli")
    if not milli and asked.nano > _INT64_MAX * NANO:
        raise _refuse_amount(name, f"request {asked} exceeds MaxInt64")
    start, width = _count_units(least, unit), _count_units(step, unit)
    if not width:
        raise _refuse_amount(name, f"step {step} is zero")
    steps = -(-(_count_units(asked, unit) - start) // width)
    value = start + steps * width
    if value > _INT64_MAX and (milli or start >= 0):
        raise _refuse_amount(name, f"rounding request {asked} up passes the range")
    return Quantity.of_nano(value * unit)


def _refuse_amount(name: str, why: str) -> AmountError:
    return AmountError(
        f'capacity "{name}": capacity request cannot be represented in the device\'s '
        f"range arithmetic: {why}"
    )


def _violates_policy(
    name: str, amount: int, policy: CapacityRequestPolicy, *, fractional: bool
) -> bool:
    if policy.default is not None and amount == policy.default.nano:
        return False
    allowed = policy.valid_range
    if allowed is None:
        values = policy.valid_values or ()
        return bool(values) and amount not in {value.nano for value in values}
    if allowed.max is not None and amount > allowed.max.nano:
        return True
    if allowed.step is None:
        return False
    unit = NANO
    if _is_milli(allowed, fractional=fractional):
        unit = _MILLI
        if amount % unit:
            return True
    width = _count_units(allowed.step, unit)
    if allowed.min is None or not width:
        raise AmountError(f'capacity "{name}": its range has no minimum or no step')
    return (-(-amount // unit) - _count_units(allowed.min, unit)) % width != 0


def _is_milli(allowed: CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    """True if the range is computed in thousandths (DRAFractionalCapacityRange)."""
    if not fractional:
        return False
    for value in (allowed.min, allowed.max, allowed.step):
        if value is not None and (
            value.nano % _MILLI or abs(value.nano) > _INT64_MAX * _MILLI
        ):
            return False
    return allowed.step is None or allowed.step.nano >= _MILLI


def _count_units(amount: Quantity, unit: int) -> int:
    """Count units, rounded up as Quantity.Value does."""
    return -(-amount.nano // unit)
