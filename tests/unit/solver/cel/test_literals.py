"""Literals of one type, by Kubernetes' rule."""

from __future__ import annotations

import pytest

from tests.builders.expressions import judge_expression

MIXED = "CEL compile error: expected type 'int' but found 'string'"


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 'a'].size() == 2",
        "{'a': 1, 'b': 'x'}.size() == 2",
        "{1: 1, 'b': 2}.size() == 2",
        "[1].exists(x, [x, 'a'].size() == 2)",
        "size([[1, 'a']]) == 1",
        "{'a': [1, 'a']}.size() == 1",
    ],
)
def test_a_literal_that_mixes_types_is_no_selector(expression: str) -> None:
    """Wherever it stands: elements, keys and values, in what it is part of."""
    assert judge_expression(expression).error == MIXED


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2].size() == 2",
        "{'a': 1, 'b': 2}.size() == 2",
        "[].size() == 0",
        "'%s %d'.format(['a', 1]) == 'a 1'",
    ],
)
def test_equal_types_and_arguments_of_format_pass(expression: str) -> None:
    """What is formatted may be of any types."""
    assert judge_expression(expression).value is True


def test_an_attribute_is_of_no_type_that_a_literal_shares() -> None:
    """A dynamic value beside a number is a mix, too."""
    verdict = judge_expression('[device.attributes["d"].x, 7].size() == 2')
    assert verdict.error == "CEL compile error: expected type 'dyn' but found 'int'"
