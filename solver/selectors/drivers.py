"""Which driver a selector insists on, found without running it.

Most DeviceClasses begin with `device.driver == "..."`. Who says nothing of the kind may
choose devices of any driver: more work for whoever asks, never a wrong answer.
"""

from __future__ import annotations

from solver.cache import cached
from solver.selectors.footprint import is_too_long
from solver.selectors.tokens import Token, read_literal, tokens_of

_DRIVER = ["device", ".", "driver"]
_LOOSER = frozenset({"||", "?"})
"""Operators that bind looser than `&&`."""


@cached(bound=8192)
def driver_of(expression: str) -> str | None:
    """Return the only driver whose devices an expression can select; None: any."""
    tokens = None if is_too_long(expression) else tokens_of(expression)
    for term in _split_conjunction(tokens or ()):
        if len(term) != 5 or term[3 if _begins_comparison(term) else 1].text != "==":
            continue
        literal = term[4] if _begins_comparison(term) else term[0]
        if _begins_comparison(term) or [token.text for token in term[2:]] == _DRIVER:
            return read_literal(literal)
    return None


def _begins_comparison(term: list[Token]) -> bool:
    return [token.text for token in term[:3]] == _DRIVER


def _split_conjunction(tokens: tuple[Token, ...]) -> list[list[Token]]:
    """Split at the `&&` outside of brackets; nothing if something binds looser."""
    terms: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "mark":
            depth += (token.text in "([{") - (token.text in ")]}")
            if depth == 0 and token.text in _LOOSER:
                return []
            if depth == 0 and token.text == "&&":
                terms.append([])
                continue
        terms[-1].append(token)
    return terms
