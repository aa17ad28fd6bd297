"""Deep expressions are written with fewer levels and mean the same."""

from __future__ import annotations

import pytest

from solver.cel.deep import MAX_LEVELS, NAME, write_shallow
from tests.builders import device
from tests.builders.expressions import judge_expression

NIC = device(attributes={"speed": 4})


@pytest.mark.parametrize(
    "written", ["1 + x", "-!a.b?.c", "has(a.?b[?c])", "f(1, .g())"]
)
def test_what_is_not_deep_keeps_its_words(written: str) -> None:
    shallow = write_shallow(written)
    assert shallow is None or shallow.replace(" ", "") == written.replace(" ", "")


def test_what_lies_deep_is_named_in_the_macro_s_body_that_it_is_in() -> None:
    """Elsewhere the macro's own name would not be known."""
    shallow = write_shallow("[1].all(x, x" + " + x" * 60 + " > 0)")
    assert shallow is not None
    assert shallow.startswith(f"[1].all(x, cel.bind({NAME}1, x + x")
    assert f"cel.bind({NAME}2, {NAME}1 + x" in shallow


@pytest.mark.parametrize("count", [20, 40, 80, 120])
@pytest.mark.parametrize(
    ("before", "each", "after"),
    [
        pytest.param("1", "+1", " > {count}", id="sum"),
        pytest.param("(1", "-1", ") == 1 - {count}", id="from the left"),
        pytest.param("9223372036854775807 - {count}", "+1", " > 0", id="no overflow"),
        pytest.param("'x'", ".trim()", " == 'x'", id="methods"),
        pytest.param("", "false ? 1 / 0 == 1 : ", "true", id="choices"),
        pytest.param("[[1]].all(x, x", ".map(y, y + 0)", " == [1])", id="macros"),
        pytest.param("1 == 1 || 1", " + 1", " / 0 == 1", id="absorbed error"),
        pytest.param(
            "optional.of(1)", ".or(optional.none())", ".value() == 1", id="or"
        ),
    ],
)
def test_a_deep_expression_is_judged(
    before: str, each: str, after: str, count: int
) -> None:
    whole = (before + each * count + after).replace("{count}", str(count))
    assert judge_expression(whole, NIC).value is True


@pytest.mark.parametrize(
    "side",
    [
        "true && (false || " * 40 + "true" + ")" * 40,
        "[1].map(x, x) == [1] && (" * 40 + "true" + ")" * 40,
        "!(" * 40 + "true" + ")" * 40,
        "int(" * 40 + "4" + ")" * 40 + " == 4",
        "{'a': " * 40 + "1" + "}" * 40 + ".a" * 40 + " == 1",
    ],
)
def test_both_sides_may_be_deep(side: str) -> None:
    """What is named on one side stays out of the other's way."""
    assert judge_expression(f"({side}) == ({side})", NIC).value is True


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("1" + " + 1" * 60 + " / 0 == 1", "division by zero"),
        ("9223372036854775807" + " + 1" * 60 + " > 0", "integer overflow"),
        ("1" + " + 1" * 60 + " + 'a' == 1", "found no matching overload"),
        ("[1" + " + 1" * 60 + ", 'a'].size() == 2", "expected type 'int'"),
        ("nope" + " + 1" * 60 + " == 1", "undeclared reference to 'nope'"),
    ],
)
def test_its_errors_stay(expression: str, error: str) -> None:
    assert error in judge_expression(expression, NIC).error


@pytest.mark.parametrize(
    "expression",
    [
        "1" + "+1" * MAX_LEVELS,
        "(" * 5000 + "1",
        f"{NAME}0 == 1",
        "1 +",
        "a b",
        "{1: 2",
        "[1",
        "f(1",
        "a.1",
        ")",
        "a ? b",
        "'",
    ],
)
def test_what_nobody_reads_is_left_alone(expression: str) -> None:
    """More levels than Kubernetes reads, or no CEL."""
    assert write_shallow(expression) is None
