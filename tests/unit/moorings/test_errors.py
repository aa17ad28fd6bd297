"""Errors of the command line as people read them."""

from __future__ import annotations

import pytest

from moorings.errors import UnknownNameError


@pytest.mark.parametrize(
    ("known", "why", "text"),
    [
        ((), "", "no gang named 'x'"),
        (("y", "z"), "", "no gang named 'x'; did you mean y, z?"),
        ((), "look there", "no gang named 'x'; look there"),
        (("y",), "look there", "no gang named 'x'; look there; did you mean y?"),
    ],
)
def test_a_name_that_is_unknown_comes_with_what_helps(
    known: tuple[str, ...], why: str, text: str
) -> None:
    """Near names first, then where else it may be."""
    assert str(UnknownNameError("gang", "x", known, why)) == text
