"""The engine's complaints, in words that people search for."""

from __future__ import annotations

import pytest

from solver.cel.refusals import MAX_TEXT, compile_error, runtime_error


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('NOT_FOUND: Key not found in map : "x"', "no such key: x"),
        ("UNKNOWN: No matching overloads found : f(int64)", "no such overload"),
        ("UNKNOWN: Index error: index=5 size=2", "index out of bounds: 5"),
        ("INVALID_ARGUMENT: divide by zero", "division by zero"),
        (
            "OUT_OF_RANGE: quantity: 'x' is not a quantity",
            "quantity: 'x' is not a quantity",
        ),
        ("", "out of memory"),
        ("std::bad_alloc", "out of memory"),
    ],
)
def test_a_failure_is_told_in_upstreams_words(said: str, meant: str) -> None:
    """People search for the words that kube-scheduler would use."""
    assert runtime_error(said).error == f"CEL runtime error: {meant}"


def test_a_compile_error_loses_its_code_and_its_drawing() -> None:
    """One line is left, with what is wrong."""
    said = (
        "INVALID_ARGUMENT: ERROR: <input>:1:1: undeclared reference to 'x' "
        "(in container '')\n | x\n | ^ [INVALID_ARGUMENT]"
    )
    assert compile_error(said).error == (
        "CEL compile error: undeclared reference to 'x' (in container '')"
    )


@pytest.mark.parametrize(
    "said",
    [
        "INTERNAL: Iteration budget exceeded [INTERNAL]",
        "CANCELLED: Expression recursion limit exceeded. limit: 32 [CANCELLED]",
        "ERROR: <input>:-1:-1: Exceeded max recursion depth of 32 when parsing.",
    ],
)
def test_our_own_limits_are_owned_up_to(said: str) -> None:
    """What upstream would allow is not blamed on the expression."""
    assert "a limit of this allocator" in runtime_error(said).error


def test_a_long_complaint_is_cut() -> None:
    """No expression makes a message of any length."""
    assert len(runtime_error("x" * 10_000).error) <= MAX_TEXT + 30
    assert len(runtime_error(f'Key not found in map : "{"x" * 9999}"').error) < 600
