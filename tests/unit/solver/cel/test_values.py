"""Quantities and versions as CEL values."""

from __future__ import annotations

import pytest

from tests.builders.expressions import judge_expression


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("quantity('1Gi') == quantity('1024Mi')", True),
        ("quantity('1Gi').isGreaterThan(quantity('1G'))", True),
        ("quantity('1').isLessThan(quantity('1'))", False),
        ("quantity('1').compareTo(quantity('2')) == -1", True),
        ("quantity('1').add(2).sub(quantity('500m')) == quantity('2500m')", True),
        ("quantity('3').asInteger() == 3", True),
        ("quantity('1500m').isInteger()", False),
        ("quantity('1500m').asApproximateFloat() == 1.5", True),
        ("sign(quantity('-1m')) == -1", True),
        ("isQuantity('1Gi')", True),
        ("isQuantity('x')", False),
    ],
)
def test_quantities_are_exact_amounts(expression: str, value: bool) -> None:
    """However they are written, in whole and in parts."""
    assert judge_expression(expression).value is value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("semver('1.2.3+a') == semver('1.2.3+b')", True),
        ("semver('1.10.0').isGreaterThan(semver('1.9.0'))", True),
        ("semver('1.0.0-rc.1').compareTo(semver('1.0.0')) == -1", True),
        ("semver('1.2.3-rc.1').patch() == 3", True),
        ("semver('v1.2', true).minor() == 2", True),
        ("isSemver('v1.2', true)", True),
        ("isSemver('v1.2')", False),
        ("isSemver('01.2.3')", False),
    ],
)
def test_versions_are_ordered_by_their_precedence(expression: str, value: bool) -> None:
    """Build metadata does not matter; leniency is asked for."""
    assert judge_expression(expression).value is value


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("quantity('1500m').asInteger() == 1", "cannot convert value to integer"),
        ("quantity('10E').asInteger() == 1", "cannot convert value to integer"),
        ("semver('v1.2').minor() == 2", "'v1.2' is no semantic version"),
        ("semver('9223372036854775808.0.0').major() == 1", "integer overflow"),
    ],
)
def test_what_is_no_value_of_the_kind_is_an_error(expression: str, error: str) -> None:
    """Nothing is rounded, cut or mended unasked."""
    assert judge_expression(expression).error == f"CEL runtime error: {error}"
