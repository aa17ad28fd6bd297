"""Splits CEL into tokens, as its grammar does, without giving them a meaning.

Stands alone because two stages must agree on it to the letter: what an expression
reads (`footprint_of`) and how the sandbox rewrites it. A text that is cut wrongly here
could hide a read, so what the grammar would not accept has no tokens at all.

Source: google/cel-spec, doc/langdef.md, "Syntax".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from solver.cache import cached

_TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n\f]+|//[^\n]*)+)
    |(?P<bytes>[bB](?=[rR]?["']))?
     (?P<string>
        [rR](?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"[^"\r\n]*"|'[^'\r\n]*')
        |\"{3}(?:[^\\]|\\[\s\S])*?\"{3}|'{3}(?:[^\\]|\\[\s\S])*?'{3}
        |"(?:[^"\\\r\n]|\\[\s\S])*"|'(?:[^'\\\r\n]|\\[\s\S])*'
     )
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<escaped>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?
        |(?:[0-9]*\.)?[0-9]+(?:[eE][+-]?[0-9]+)?[uU]?)
    |(?P<mark>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.ASCII,
)
_OPENING = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """One token: a `string`, `name`, `escaped`, `number` or `mark`."""

    kind: str
    text: str
    start: int
    end: int


@cached(bound=1024)
def tokens_of(expression: str) -> tuple[Token, ...] | None:
    """Split an expression into tokens; None: it is no CEL."""
    tokens: list[Token] = []
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            return None
        kind = match.lastgroup or ""
        if match.group("bytes"):
            kind = "bytes"
        if kind != "space":
            tokens.append(Token(kind, match.group(), position, match.end()))
        position = match.end()
    return tuple(tokens)


def read_literal(token: Token) -> str | None:
    """Read a string literal; None: it is none, or its escapes are not read here."""
    if token.kind != "string":
        return None
    raw = token.text[0] in "rR"
    text = token.text[1:] if raw else token.text
    for quote in ('"' * 3, "'" * 3):
        if len(text) >= 6 and text.startswith(quote):
            text = text[2:-2]
            break
    return None if "\\" in text and not raw else text[1:-1]


def closing(tokens: tuple[Token, ...], opening: int) -> int | None:
    """Find the bracket that closes the one at an index; None: there is none."""
    expected: list[str] = []
    for index in range(opening, len(tokens)):
        kind, text = tokens[index][:2]
        if kind != "mark":
            continue
        if text in _OPENING:
            expected.append(_OPENING[text])
        elif text in _OPENING.values():
            if expected.pop() != text:
                return None
            if not expected:
                return index
    return None
