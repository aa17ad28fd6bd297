"""How a broken rule is said, and how lists are checked."""

from __future__ import annotations

import pytest

from contracts.validate.violation import Violation, Violations, check_each, invalid


def no_odd_number(number: int, path: str) -> Violations:
    """Refuse what is odd."""
    if number % 2:
        yield invalid(path, number, "must be even")


@pytest.mark.parametrize(
    ("value", "shown"), [("a", '"a"'), (True, "true"), (7, "7"), ("\n", '"\\n"')]
)
def test_a_value_is_shown_as_in_json(value: object, shown: str) -> None:
    """Whoever reads a violation sees which type the value has."""
    assert str(invalid("at", value, "no")) == f"at: Invalid value: {shown}: no"


def test_what_is_empty_is_left_out() -> None:
    """A rule without a message ends with the rule."""
    assert str(Violation(field="at", rule="Required value")) == "at: Required value"


def test_a_list_that_is_too_long_is_not_looked_into() -> None:
    """Its length is the one violation, whatever its items are."""
    assert [v.rule for v in check_each([1, 1, 1], 2, "at", no_odd_number)] == [
        "Too many"
    ]
    paths = [v.field for v in check_each([2, 1, 3], 3, "at", no_odd_number)]
    assert paths == ["at[1]", "at[2]"]
