"""What constraints compare: values with their kinds, derived ones first."""

from __future__ import annotations

import pytest

from contracts.features import Features
from solver.problem.attributes import Element, elements_of
from tests.builders import Value, Version, attribute

ON = Features(list_type_attributes=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, {("int", 1)}),
        ("1", {("string", "1")}),
        (True, {("bool", True)}),
        (False, {("bool", False)}),
        (0, {("int", 0)}),
        (Version("1.0.0"), {("version", "1.0.0")}),
        ([1, 2, 1], {("int", 1), ("int", 2)}),
    ],
)
def test_a_value_is_compared_with_its_kind(
    value: Value, expected: set[Element]
) -> None:
    """So that 1, "1" and true differ; a list is the set of its elements."""
    assert elements_of(attribute(value), ON) == expected


def test_while_lists_are_off_a_list_is_no_value() -> None:
    """As upstream has it: the attribute is there, and equal in nothing."""
    off = Features(list_type_attributes=False)
    assert elements_of(attribute([1]), off) == frozenset()
    assert elements_of(attribute(1), off) == {("int", 1)}
    assert elements_of(None, ON) == frozenset()
