"""Derived attributes: scalars and lists of one type."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.device import DeviceAttribute
from solver.cel.derived import refuse_type, verdict_of_value
from solver.cel.messages import SEMVER
from tests.builders import DRIVER, attribute, device
from tests.builders.expressions import judge_expression


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, DeviceAttribute(bool_value=True)),
        (1, DeviceAttribute(int_value=1)),
        ("a", DeviceAttribute(string_value="a")),
        (SEMVER(value="1.2.3"), DeviceAttribute(version_value="1.2.3")),
        ([True, False], DeviceAttribute(bool_values=(True, False))),
        ([SEMVER(value="1.0.0")], DeviceAttribute(version_values=("1.0.0",))),
        ([], DeviceAttribute(string_values=())),
    ],
)
def test_a_value_becomes_the_attribute_of_its_type(
    value: Any, expected: DeviceAttribute
) -> None:
    """True is no number, and a list of nothing is one of texts."""
    assert verdict_of_value(value).attribute == expected


@pytest.mark.parametrize("value", [1.5, [1, "a"], [1, True], [1.5], {"a": 1}])
def test_what_no_attribute_can_be_is_an_error(value: Any) -> None:
    """Of one device: another may have a value that fits."""
    verdict = verdict_of_value(value)
    assert verdict.attribute is None
    assert verdict.error.startswith("CEL runtime error: ")


@pytest.mark.parametrize(
    ("kind", "is_refused"),
    [
        ("INT", False),
        ("DYN", False),
        ("LIST<STRING>", False),
        ("LIST<kubernetes.Semver>", False),
        ("DOUBLE", True),
        ("MAP<STRING, DYN>", True),
        ("kubernetes.Quantity", True),
    ],
)
def test_a_type_that_is_never_an_attribute_is_refused_at_once(
    kind: str, is_refused: bool
) -> None:
    """Before any device is looked at."""
    refusal = refuse_type(kind)
    assert (refusal is not None) is is_refused
    assert refusal is None or kind in refusal.error


def test_null_is_an_error_and_not_the_end_of_the_process() -> None:
    """The engine's library cannot hand it over."""
    verdict = judge_expression("=dyn(null)")
    assert verdict.error.startswith("CEL runtime error: unsupported type")


def test_an_attribute_is_derived_from_what_a_device_publishes() -> None:
    """The value is of the type that the expression has for this device."""
    content = device(attributes={"size": 4})
    expression = f'=device.attributes["{DRIVER}"].size * 2'
    assert judge_expression(expression, content).attribute == attribute(8)
