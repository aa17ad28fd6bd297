"""What a use consumes of a capacity: defaults, steps, valid values, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from contracts.quantity import Quantity
from solver.devices.capacity_amounts import compute_consumed
from solver.errors import AmountError
from tests.builders import device

Q = Quantity.parse


def policy(default: str | None = None, **fields: Any) -> CapacityRequestPolicy:
    return CapacityRequestPolicy(default=Q(default) if default else None, **fields)


def span(**limits: str) -> CapacityRequestPolicyRange:
    return CapacityRequestPolicyRange(**{name: Q(v) for name, v in limits.items()})


EVEN = policy("2", valid_range=span(min="2", step="2", max="4"))
LISTED = policy("1", valid_values=(Q("1"), Q("4")))
HALVES = policy("500m", valid_range=span(min="500m", step="500m"))


def amount(
    rule: CapacityRequestPolicy | None, asked: str | None, *, fractional: bool = True
) -> str | None:
    item = device(capacity={"m": DeviceCapacity(value=Q("10"), request_policy=rule)})
    requests = {} if asked is None else {"m": Q(asked)}
    found = compute_consumed(item.capacity, requests, fractional=fractional)
    return None if found is None else str(Quantity.of_nano(found["m"].nano))


@pytest.mark.parametrize(
    ("rule", "asked", "consumed"),
    [
        (None, None, "10"),
        (None, "3", "3"),
        (policy("0"), None, "0"),
        (EVEN, None, "2"),
        (EVEN, "1", "2"),
        (EVEN, "3", "4"),
        (EVEN, "4", "4"),
        (EVEN, "5", None),
        (LISTED, None, "1"),
        (LISTED, "2", "4"),
        (LISTED, "5", None),
        (HALVES, "600m", "1"),
        (policy(valid_range=span(min="1")), "1500m", "1500m"),
    ],
)
def test_amounts_follow_the_policy(
    rule: CapacityRequestPolicy | None, asked: str | None, consumed: str | None
) -> None:
    """Defaults, steps and valid values are those of the device."""
    assert amount(rule, asked) == consumed


def test_whole_units_round_up_without_fractional_ranges() -> None:
    """As upstream does while that gate is off."""
    assert amount(EVEN, "2500m", fractional=False) == "4"


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        (EVEN, "2500500u"),
        (policy(valid_range=span(min="0", step="2")), "1e30"),
        (None, "-1"),
        (policy(valid_range=span(step="1")), "3"),
    ],
)
def test_what_cannot_be_computed_is_an_error(
    rule: CapacityRequestPolicy | None, asked: str
) -> None:
    """A malformed policy is never taken for a no."""
    with pytest.raises(AmountError, match="capacity"):
        amount(rule, asked)


def test_a_capacity_that_the_device_lacks_is_not_had() -> None:
    """Then the device serves no such request."""
    assert compute_consumed({}, {"m": Q("1")}, fractional=True) is None
