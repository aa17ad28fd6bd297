"""Methods of lists, as Kubernetes has them."""

from __future__ import annotations

import pytest

from solver.cel.lists import MAX_INCLUDED
from tests.builders.expressions import judge_expression


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[1, 2, 2].isSorted()", True),
        ("[2, 1].isSorted()", False),
        ("[1, 2].sum() == 3", True),
        ("[3, 1].min() == 1", True),
        ("[3, 1].max() == 3", True),
        ("[1, 2, 1].indexOf(1) == 0", True),
        ("[1, 2, 1].lastIndexOf(1) == 2", True),
        ("[1, 2].indexOf(3) == -1", True),
    ],
)
def test_a_list_is_asked_for_order_sum_and_places(expression: str, value: bool) -> None:
    """What is not in a list has the place -1."""
    assert judge_expression(expression).value is value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('"abcb".indexOf("b") == 1', True),
        ('"abcb".lastIndexOf("b") == 3', True),
        ('"abcb".indexOf("b", 2) == 3', True),
        ('"abcb".lastIndexOf("b", 2) == 1', True),
    ],
)
def test_texts_keep_their_methods_of_the_same_names(
    expression: str, value: bool
) -> None:
    """A search may begin at a place, and the last one ends there."""
    assert judge_expression(expression).value is value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[1, 2].includes(2)", True),
        ("[1, 2].includes(3)", False),
        ('"a".includes("a")', True),
        ("dyn([true]).includes(1)", False),
        ("dyn([1.0]).includes(1)", True),
    ],
)
def test_includes_reads_a_value_as_a_list_of_one(expression: str, value: bool) -> None:
    """Values are compared as CEL does: true is not 1, but 1 is 1.0."""
    assert judge_expression(expression).value is value


def test_includes_looks_at_so_many_elements_and_no_more() -> None:
    """What comes later is neither found nor denied."""
    elements = ", ".join(map(str, range(MAX_INCLUDED + 1)))
    assert judge_expression(f"[{elements}].includes({MAX_INCLUDED - 1})").value
    verdict = judge_expression(f"[{elements}].includes({MAX_INCLUDED})")
    assert (
        verdict.error
        == f"CEL runtime error: includes: more than {MAX_INCLUDED} " + ("elements")
    )


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("[9223372036854775807, 1].sum() == 1", "integer overflow"),
        ("[].min() == 1", "min called on empty list"),
        ("[].max() == 1", "max called on empty list"),
        ('"abcb".indexOf("b", 9) == 3', "index out of range: 9"),
        ('["a"].sum() == 1', "no such overload"),
    ],
)
def test_what_has_no_answer_is_an_error(expression: str, error: str) -> None:
    """In Kubernetes' words, never a guess."""
    assert judge_expression(expression).error == f"CEL runtime error: {error}"
