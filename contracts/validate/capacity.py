"""Request policies: which amounts of a shareable capacity may be asked for.

Judges a policy against its own capacity, in exact arithmetic; what a request asks for
is not known here.

Source: KEP-5075.
"""

from __future__ import annotations

from contracts.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from contracts.quantity import Quantity
from contracts.validate.violation import (
    Violations,
    duplicate,
    forbidden,
    invalid,
    required,
    too_many,
)

MAX_VALID_VALUES = 10


def check_capacity(
    value: DeviceCapacity, *, is_shareable: bool, path: str
) -> Violations:
    """Require a policy that fits the value; only shareable devices have one.

    The value itself may be anything, negative too, as that of a counter.
    Source: kubernetes/pkg/apis/resource/validation, "Any parsed quantity is valid".
    """
    policy = value.request_policy
    if policy is None:
        return
    path = f"{path}.requestPolicy"
    if not is_shareable:
        yield forbidden(path, "allowMultipleAllocations must be true")
    elif policy.valid_values and policy.valid_range is not None:
        message = "cannot specify `validValues` and `validRange` at the same time"
        yield forbidden(path, message)
    else:
        yield from _check_policy(policy, value.value, path)


def _check_policy(
    policy: CapacityRequestPolicy, total: Quantity, path: str
) -> Violations:
    default = policy.default
    if policy.valid_values:
        if default is None:
            yield required(f"{path}.default", "required when validValues is defined")
        else:
            values = policy.valid_values
            yield from _check_values(values, default, total, f"{path}.validValues")
    elif policy.valid_range is not None:
        if default is None:
            yield required(f"{path}.default", "required when validRange is defined")
        else:
            limits = policy.valid_range
            yield from _check_range(limits, default, total, f"{path}.validRange")


def _check_values(
    values: tuple[Quantity, ...], default: Quantity, total: Quantity, path: str
) -> Violations:
    for index in range(1, len(values)):
        if values[index] < values[index - 1]:
            message = "values must be sorted in ascending order"
            yield invalid(f"{path}[{index}]", values[index].text, message)
    if len(values) > MAX_VALID_VALUES:
        yield too_many(path, len(values), MAX_VALID_VALUES)
        return
    for index, value in enumerate(values):
        if value > total:
            message = f"option is larger than capacity value: {total}"
            yield invalid(f"{path}[{index}]", value.text, message)
        if value in values[:index]:
            yield duplicate(f"{path}[{index}]", value.text)
    if default not in values:
        message = "default value is not valid according to the requestPolicy"
        yield invalid(path, default.text, message)


def _check_range(
    limits: CapacityRequestPolicyRange, default: Quantity, total: Quantity, path: str
) -> Violations:
    low, high, step = limits.min, limits.max, limits.step
    if low is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    if low.nano < 0:
        yield invalid(f"{path}.min", low.text, "must be greater than or equal to 0")
    if low > total:
        message = f"min is larger than capacity value: {total}"
        yield invalid(f"{path}.min", low.text, message)
    if default < low:
        message = f"default is less than min: {low}"
        yield invalid(f"{path}.default", default.text, message)
    if high is not None:
        yield from _check_upper(low, high, default, total, path)
    if step is not None:
        place = f"{path}.step"
        yield from _check_step(low, step, total, place)
        for value in (default, high):
            if value is not None and step.nano > 0:
                yield from _check_multiple(value, low, step, place)


def _check_upper(
    low: Quantity, high: Quantity, default: Quantity, total: Quantity, path: str
) -> Violations:
    if low > high:
        yield invalid(f"{path}.max", high.text, f"max is less than min: {low}")
    if high > total:
        message = f"max is larger than capacity value: {total}"
        yield invalid(f"{path}.max", high.text, message)
    if default > high:
        message = f"default is more than max: {high}"
        yield invalid(f"{path}.default", default.text, message)


def _check_step(
    low: Quantity, step: Quantity, total: Quantity, path: str
) -> Violations:
    if step.nano <= 0:
        yield invalid(path, step.text, "must be greater than zero")
    elif low.nano + step.nano > total.nano:
        message = f"min plus one step is larger than capacity value: {total}"
        yield invalid(path, step.text, message)


def _check_multiple(
    value: Quantity, low: Quantity, step: Quantity, path: str
) -> Violations:
    if (value.nano - low.nano) % step.nano:
        message = f"value is not a multiple of a given step ({step}) from ({low})"
        yield invalid(path, value.text, message)
