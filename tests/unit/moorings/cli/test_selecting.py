"""Selectors mean what they mean to kubectl."""

from __future__ import annotations

import pytest

from contracts.labels import does_match
from moorings.cli.selecting import parse_selector
from moorings.errors import UsageError

LABELS = {"app": "train", "example.com/tier": "gold", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=train", True),
        ("app==train, example.com/tier=gold", True),
        ("app=other", False),
        ("app!=other,zone!=a", True),
        ("app!=train", False),
        ("app", True),
        ("!app", False),
        ("zone", False),
        ("!zone", True),
        ("app in (serve, train)", True),
        ("app notin (serve, train)", False),
        ("zone notin (a),app in (train)", True),
        ("empty=", True),
    ],
)
def test_a_selector_selects_by_labels(text: str, matches: bool) -> None:
    assert does_match(parse_selector(text), LABELS) == matches


@pytest.mark.parametrize("text", ["a=b=c", "a in b", "=x", "a in (x", "a b"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        parse_selector(text)
