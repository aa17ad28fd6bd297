"""Expressions over a device become verdicts, whatever their value is."""

from __future__ import annotations

import pytest

from solver.selectors.footprint import MAX_EXPRESSION_BYTES
from tests.builders import DRIVER, device
from tests.builders.expressions import judge_expression

CONTENT = device(attributes={"big": True, "size": 4}, capacity={"memory": "8Gi"})
OWN = f'device.attributes["{DRIVER}"]'


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f'device.driver == "{DRIVER}"', True),
        (f"{OWN}.big", True),
        (f"{OWN}.size > 4", False),
        (f'device.capacity["{DRIVER}"].memory == quantity("8192Mi")', True),
        ("device.allowMultipleAllocations", False),
    ],
)
def test_a_selector_says_yes_or_no_of_a_device(expression: str, value: bool) -> None:
    """A value of unknown type is read when it is there."""
    assert judge_expression(expression, CONTENT).value is value


@pytest.mark.parametrize("expression", [f"{OWN}.size", "dyn(null)", "dyn('true')"])
def test_a_value_that_is_no_bool_is_an_error_of_this_device(expression: str) -> None:
    """Null is one of them, and must not end the process."""
    verdict = judge_expression(expression, CONTENT)
    assert verdict.value is None
    assert verdict.error.startswith("CEL runtime error: ")


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("1 + 1", "must evaluate to bool or the unknown type, not INT"),
        ("true" + " " * MAX_EXPRESSION_BYTES, f"longer than {MAX_EXPRESSION_BYTES}"),
        ("nothing", "undeclared reference to 'nothing'"),
    ],
)
def test_what_never_says_yes_or_no_is_no_selector(expression: str, error: str) -> None:
    """It is refused before any device is looked at."""
    refused = judge_expression(expression, CONTENT).error
    assert refused.startswith(f"CEL compile error: {error}")
