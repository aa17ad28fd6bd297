"""Comparisons across number types, and `string` of more types."""

from __future__ import annotations

import pytest

from tests.builders.expressions import judge_expression


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 < 1.5", True),
        ("2u > 1", True),
        ("1.5 >= 2", False),
        ("1 <= 1u", True),
        ("-1 < 0u", True),
        ("'a' < 'b'", True),
        ("b'a' <= b'a'", True),
        ("timestamp('2026-01-01T00:00:00Z') > timestamp('2025-01-01T00:00:00Z')", True),
        ("duration('1m') < duration('61s')", True),
    ],
)
def test_numbers_of_any_types_are_compared(expression: str, value: bool) -> None:
    """Other values with their own type alone."""
    assert judge_expression(expression).value is value


@pytest.mark.parametrize(
    "expression",
    [
        "string(1) == '1'",
        "string(true) == 'true'",
        "string(ip('::0')) == '::'",
        "string(cidr('10.0.0.0/8')) == '10.0.0.0/8'",
    ],
)
def test_addresses_and_networks_are_written_as_texts(expression: str) -> None:
    """Beside what CEL itself writes so."""
    assert judge_expression(expression).value is True


@pytest.mark.parametrize("expression", ["1 < 'a'", "string(quantity('1')) == '1'"])
def test_what_has_no_overload_is_no_selector(expression: str) -> None:
    """It is refused before any device is looked at."""
    error = judge_expression(expression).error
    assert error.startswith("CEL compile error: found no matching overload")
