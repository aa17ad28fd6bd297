"""Names become one token of a subject, and come back."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contracts.errors import SubjectError
from contracts.tokens import token, untoken


@given(st.text(min_size=1, max_size=40))
@example("node-1.example.com")
@example("a_b=2E c*>")
def test_every_name_comes_back_from_its_token(name: str) -> None:
    """And a token has no character that NATS gives a meaning."""
    text = token(name)

    assert untoken(text) == name
    assert re.fullmatch(r"[A-Za-z0-9_=-]+", text)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=8, unique=True))
def test_different_names_have_different_tokens(names: list[str]) -> None:
    """No two objects share a subject."""
    assert len({token(name) for name in names}) == len(names)


def test_the_longest_kubernetes_name_fits_and_longer_ones_do_not() -> None:
    """An empty name is none."""
    assert token("a" * 253)
    with pytest.raises(SubjectError):
        token("é" * 254)
    with pytest.raises(SubjectError, match="empty"):
        token("")


@pytest.mark.parametrize(
    "text", ["a=41", "=2E", "a=2Eb", "a=zz", "=C3", "", "a" * 760, "é", "=61" * 300]
)
def test_a_name_is_read_from_its_own_token_alone(text: str) -> None:
    """So what is written once, by its subject, is written once by its name."""
    with pytest.raises(SubjectError):
        untoken(text)


def test_half_a_character_is_no_name() -> None:
    """A lone surrogate has no bytes."""
    with pytest.raises(SubjectError, match="Unicode"):
        token("a\ud800")
