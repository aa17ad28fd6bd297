"""CEL is cut into tokens as its grammar cuts it."""

from __future__ import annotations

import pytest

from solver.selectors.tokens import closing, read_literal, tokens_of


def kinds(expression: str) -> list[str]:
    """Name the kinds of an expression's tokens."""
    tokens = tokens_of(expression)
    assert tokens is not None
    return [token.kind for token in tokens]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.b", ["name", "mark", "name"]),
        ("a // rest\n+ 1", ["name", "mark", "number"]),
        ("'it''s'", ["string", "string"]),
        ("b'a'", ["bytes"]),
        ("rb", ["name"]),
        ("0x1Fu", ["number"]),
        ("1.5e-3", ["number"]),
        ("`a.b/c`", ["escaped"]),
        ("a>=b&&!c", ["name", "mark", "name", "mark", "mark", "name"]),
        ('"""a"b"""', ["string"]),
    ],
)
def test_an_expression_is_cut_as_the_grammar_says(
    expression: str, expected: list[str]
) -> None:
    """Comments and spaces vanish; everything else is one token of its kind."""
    assert kinds(expression) == expected


@pytest.mark.parametrize("expression", ["'open", '"a\nb"', "a # b", "a \\ b", "`a+b`"])
def test_what_the_grammar_refuses_has_no_tokens(expression: str) -> None:
    """A text that is cut wrongly could hide a read."""
    assert tokens_of(expression) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"),
        ('"""a"""', "a"),
        ("''", ""),
        (r"r'a\n'", r"a\n"),
        (r"'a\n'", None),
        ("b'a'", None),
        ("7", None),
    ],
)
def test_only_plain_literals_are_read(text: str, value: str | None) -> None:
    """One with an escape needs thought, so it counts as unread."""
    (token,) = tokens_of(text) or ()
    assert read_literal(token) == value


@pytest.mark.parametrize(
    ("expression", "end"), [("(a[0])", 5), ("([)]", None), ("(a", None), ("[{}]()", 3)]
)
def test_a_bracket_ends_where_its_own_kind_ends(
    expression: str, end: int | None
) -> None:
    """Brackets that cross have no end at all."""
    assert closing(tokens_of(expression) or (), 0) == end
