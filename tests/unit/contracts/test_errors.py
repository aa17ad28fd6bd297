"""Errors as people read them."""

from __future__ import annotations

import pytest

from contracts.errors import DecodeError, UnknownKindError


@pytest.mark.parametrize(
    ("field", "text"),
    [("$", "claim: no"), ("", "claim: no"), ("$.spec.count", "claim: spec.count: no")],
)
def test_a_decode_error_names_the_field_unless_it_is_the_whole(
    field: str, text: str
) -> None:
    """The path begins at the object, not at the root sign of the decoder."""
    assert str(DecodeError("claim", field, "no")) == text


def test_an_unknown_kind_is_named_as_far_as_it_says_what_it_is() -> None:
    """Kind, name and version; what is missing is said to be missing."""
    assert str(UnknownKindError("v1", "Pod", "a")) == (
        "Pod a: apiVersion v1 of this kind is unknown"
    )
    assert str(UnknownKindError("", "")) == ("object: apiVersion: required")
    assert str(UnknownKindError("v1", "")) == ("object: kind: required")
    explained = "kind", "did you mean Gang?"
    assert str(UnknownKindError("moorings.dev/v1alpha1", "Gangs", "a", explained)) == (
        "Gangs a: kind: did you mean Gang?"
    )
