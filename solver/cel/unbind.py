"""Writes `cel.bind(m, device.attributes, ...)` without the name.

What the rewriting of `device` gives the map of domains, such as an empty one for an
unknown domain, it can give it by that name alone. So another name for it, or for the
device itself, is replaced by what it stands for. Works on text alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from solver.selectors.tokens import Token, closing, tokens_of

DEVICE = "device"
MACROS = frozenset(
    {
        "all",
        "bind",
        "exists",
        "existsOne",
        "exists_one",
        "filter",
        "map",
        "optFlatMap",
        "optMap",
        "sortBy",
        "transformList",
        "transformMap",
        "transformMapEntry",
    }
)
"""What gives names to values: the first argument, and of some the second."""
_MOST = 32
"""Names that are replaced; each takes reading the expression again."""
_HEAD = ("cel", ".", "bind", "(")
_VALUES = ((DEVICE,), (DEVICE, ".", "attributes"), (DEVICE, ".", "capacity"))


def unbind(expression: str) -> str:
    """Replace names for the device and its maps; what is no CEL stays."""
    for _ in range(_MOST):
        tokens = tokens_of(expression) if "bind" in expression else None
        written = None if tokens is None else _replace_first(expression, tokens)
        if written is None:
            break
        expression = written
    return expression


def is_named(tokens: tuple[Token, ...], name: str) -> bool:
    """True if some macro gives a value that name."""
    return any(
        _is_variable(tokens, index)
        for index, token in enumerate(tokens)
        if token.text == name
    )


def _is_variable(tokens: tuple[Token, ...], index: int) -> bool:
    """True if a token is the first or second argument of a macro, and not its last."""
    if _texts(tokens, index + 1, 1) != (",",):
        return False
    before = _texts(tokens, index - 4, 4)
    return (before[2] in MACROS and before[3] == "(") or (
        before[0] in MACROS and before[1] == "(" and before[3] == ","
    )


def _replace_first(expression: str, tokens: tuple[Token, ...]) -> str | None:
    """Replace the first name that can be; None: there is none."""
    for index in range(len(tokens)):
        if _texts(tokens, index, len(_HEAD)) != _HEAD:
            continue
        end = closing(tokens, index + 3)
        value = _read_value(tokens, index + 5)
        if end is None or value is None:
            continue
        first = index + 6 + len(value) + 1
        body = tokens[first:end]
        name = tokens[index + 4].text
        if not body or is_named(body, name) or is_named(body, DEVICE):
            continue
        pieces = ["("]
        place = body[0].start
        for token in _find_uses(body, name):
            pieces += [expression[place : token.start], "".join(value)]
            place = token.end
        pieces += [expression[place : body[-1].end], ")"]
        head, tail = tokens[index].start, tokens[end].end
        return expression[:head] + "".join(pieces) + expression[tail:]
    return None


def _read_value(tokens: tuple[Token, ...], comma: int) -> tuple[str, ...] | None:
    """Read what is named, between two commas; None: something else is."""
    for value in _VALUES:
        if _texts(tokens, comma, len(value) + 2) == (",", *value, ","):
            return value
    return None


def _find_uses(body: tuple[Token, ...], name: str) -> Iterator[Token]:
    """Yield where a name is that of the value, not of a field or a function."""
    for index, token in enumerate(body):
        before = _texts(body, index - 2, 2)
        is_field = before[1] == "." or before == (".", "?")
        is_other = is_field or _texts(body, index + 1, 1) == ("(",)
        if token.kind == "name" and token.text == name and not is_other:
            yield token


def _texts(tokens: tuple[Token, ...], first: int, count: int) -> tuple[str, ...]:
    return tuple(
        tokens[index].text if 0 <= index < len(tokens) else ""
        for index in range(first, first + count)
    )
