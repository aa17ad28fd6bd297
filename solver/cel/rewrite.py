"""Rewrites Kubernetes' CEL into what the engine offers, token by token.

The engine has no maps with a default, no functions that give optionals and no second
owner of a function's name. Each is written another way here, before compiling. Works
on text alone, so that it can be read and tested without an engine.
"""

from __future__ import annotations

from solver.selectors.tokens import Token, closing, tokens_of

SHARED_NAMES = frozenset({"indexOf", "lastIndexOf"})
"""Methods of strings in the engine, of lists too in Kubernetes: we own both."""
OPTIONAL_RESULTS = {"validate": "errors", "named": "format"}
"""Methods that give an optional: ours give a map with that key, or without it."""
_MAPS = ("attributes", "capacity")
_FIELDS = frozenset({*_MAPS, "driver", "allowMultipleAllocations"})
Edit = tuple[int, int, str]
"""(start, end, text that replaces what is between)."""


def rewrite(expression: str) -> str:
    """Write an expression as the engine understands it; what is no CEL stays."""
    tokens = tokens_of(expression)
    if tokens is None:
        return expression
    edits: list[Edit] = []
    for index, token in enumerate(tokens):
        if token.text == "device":
            edits += _edit_device(tokens, index)
        elif _text(tokens, index - 1) == "." and _text(tokens, index + 1) == "(":
            edits += _edit_method(tokens, index)
    return _apply(expression, edits)


def _edit_device(tokens: tuple[Token, ...], index: int) -> list[Edit]:
    """Make an unknown domain an empty map, and `has(device.field)` true."""
    field, after = _text(tokens, index + 2), index + 3
    if _text(tokens, index + 1) != "." or field not in _FIELDS:
        return []
    is_tested = _text(tokens, index - 2) == "has" and _text(tokens, index - 1) == "("
    if is_tested and _text(tokens, after) == ")":
        return [(tokens[index - 2].start, tokens[after].end, "true")]
    if field not in _MAPS:
        return []
    if _text(tokens, after) == ".":
        return _edit_domain(tokens, after)
    end = closing(tokens, after) if _text(tokens, after) == "[" else None
    if end is None:
        return []
    last = tokens[end].end
    if _text(tokens, after + 1) == "?":
        start = tokens[index - 1 if _text(tokens, index - 1) == "." else index].start
        return [(start, start, "optional.of("), (last, last, ".orValue({}))")]
    first = tokens[after].end
    return [(first, first, "?"), (last, last, ".orValue({})")]


def _edit_domain(tokens: tuple[Token, ...], dot: int) -> list[Edit]:
    """Write `device.attributes.domain.x` with brackets; calls and `has` stay."""
    if _text(tokens, dot + 2) not in (".", "[") or tokens[dot + 1].kind != "name":
        return []
    name = tokens[dot + 1]
    return [(tokens[dot].start, name.end, f'[?"{name.text}"].orValue({{}})')]


def _edit_method(tokens: tuple[Token, ...], index: int) -> list[Edit]:
    token = tokens[index]
    if token.text in SHARED_NAMES:
        return [(token.end, token.end, "__")]
    key = OPTIONAL_RESULTS.get(token.text)
    end = closing(tokens, index + 1)
    if key is None or end is None:
        return []
    last = tokens[end].end
    return [(token.end, token.end, "__"), (last, last, f'[?"{key}"]')]


def _text(tokens: tuple[Token, ...], index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""


def _apply(text: str, edits: list[Edit]) -> str:
    """Apply edits that do not overlap; at one place, the first made comes first."""
    pieces, position = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[0]):
        pieces += [text[position:start], new]
        position = end
    return "".join(pieces) + text[position:]
