"""Request policies: every rule, broken one at a time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from contracts.validate import Validated
from tests.builders import counter_set, device, quantity, resource_slice
from tests.builders.violations import assert_broken


def shared(policy: CapacityRequestPolicy, *, shareable: bool = True) -> Validated:
    memory = DeviceCapacity(value=quantity("10"), request_policy=policy)
    is_shareable = True if shareable else None
    return resource_slice(
        device(capacity={"m": memory}, allow_multiple_allocations=is_shareable)
    )


def values(default: str | None, *options: str) -> CapacityRequestPolicy:
    return CapacityRequestPolicy(
        default=None if default is None else quantity(default),
        valid_values=tuple(quantity(option) for option in options),
    )


def limits(default: str | None, **bounds: str) -> CapacityRequestPolicy:
    amounts = {name: quantity(amount) for name, amount in bounds.items()}
    return CapacityRequestPolicy(
        default=None if default is None else quantity(default),
        valid_range=CapacityRequestPolicyRange(**amounts),
    )


@pytest.mark.parametrize(
    ("policy", "beginning"),
    [
        (values(None, "1"), "default: Required value"),
        (values("1", "2", "1"), 'validValues[1]: Invalid value: "1": values must be s'),
        (values("1", "1", "1000m"), 'validValues[1]: Duplicate value: "1000m"'),
        (values("1", "1", "11"), 'validValues[1]: Invalid value: "11": option is larg'),
        (values("3", "1", "2"), 'validValues: Invalid value: "3": default value is no'),
        (values("1", *(["1"] * 11)), "validValues: Too many: 11"),
        (limits(None, min="1"), "default: Required value"),
        (limits("1", max="5"), "validRange.min: Required value"),
        (limits("20", min="11"), 'validRange.min: Invalid value: "11": min is larger'),
        (limits("1", min="-1"), 'validRange.min: Invalid value: "-1"'),
        (limits("1", min="2"), 'validRange.default: Invalid value: "1": default is le'),
        (limits("1", min="1", max="11"), 'validRange.max: Invalid value: "11"'),
        (limits("6", min="1", max="5"), "validRange.default: Invalid value"),
        (limits("1", min="1", step="0"), 'validRange.step: Invalid value: "0"'),
        (limits("1", min="1", step="10"), 'validRange.step: Invalid value: "10"'),
        (limits("2", min="1", step="2"), 'validRange.step: Invalid value: "2": value'),
        (
            limits("1", min="1", max="4", step="2"),
            'validRange.step: Invalid value: "4": value is not a multiple',
        ),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(
    policy: CapacityRequestPolicy, beginning: str
) -> None:
    """By the field that contradicts."""
    path = "spec.devices[0].capacity[m].requestPolicy"

    assert_broken(shared(policy), f"{path}.{beginning}")


def test_a_policy_has_one_way_and_a_shareable_device() -> None:
    """Ranges or values, and only where a device is shared."""
    fine = limits("1500m", min="500m", max="2500m", step="500m")
    both = replace(fine, valid_values=(quantity("1"),))
    path = "spec.devices[0].capacity[m].requestPolicy"

    assert_broken(shared(fine))
    assert_broken(shared(fine, shareable=False), f"{path}: Forbidden")
    assert_broken(shared(both), f"{path}: Forbidden")


def test_any_amount_is_a_capacity_or_a_counter() -> None:
    """Negative ones too: any quantity that parses is valid to the API server."""
    negative = DeviceCapacity(value=quantity("-5Gi"))
    assert_broken(resource_slice(device(capacity={"m": negative})))
    shareable = device(capacity={"m": negative}, allow_multiple_allocations=True)
    assert_broken(resource_slice(shareable))
    assert_broken(resource_slice(counters=[counter_set("c", m="-1")]))
