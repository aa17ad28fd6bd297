"""How tests say which rules an object breaks."""

from __future__ import annotations

from contracts.validate import Validated, validate


def texts(value: Validated) -> list[str]:
    return [str(violation) for violation in validate(value)]


def assert_broken(value: Validated, *beginnings: str) -> None:
    """Require exactly these violations, in order, by how they begin."""
    found = texts(value)
    assert len(found) == len(beginnings), found
    for text, beginning in zip(found, beginnings, strict=True):
        assert text.startswith(beginning), found
