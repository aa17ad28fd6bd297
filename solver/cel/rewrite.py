"""Rewrites Kubernetes' CEL into what the engine offers, token by token.

The engine has no maps with a default, no functions that give optionals, no second owner
of a function's name, and no device but by its fields. Each is written another way here,
before compiling. Works on text alone, so that it can be read and tested without an
engine.
"""

from __future__ import annotations

from solver.cel.unbind import DEVICE, is_named, unbind
from solver.selectors.tokens import Token, closing, tokens_of

SHARED_NAMES = frozenset({"indexOf", "lastIndexOf"})
"""Methods of strings in the engine, of lists too in Kubernetes: we own both."""
OPTIONAL_RESULTS = {"validate": "errors", "named": "format"}
"""Methods that give an optional: ours give a map with that key, or without it."""
WHOLE = "device__"
"""The variable that is the whole device, as a map of its fields."""
_MAPS = ("attributes", "capacity")
_FIELDS = frozenset({*_MAPS, "driver", "allowMultipleAllocations"})
Edit = tuple[int, int, str]
"""(start, end, text that replaces what is between)."""


def rewrite(expression: str) -> str:
    """Write an expression as the engine understands it; what is no CEL stays."""
    expression = unbind(expression)
    tokens = tokens_of(expression)
    if tokens is None:
        return expression
    is_ours = not is_named(tokens, DEVICE)
    edits: list[Edit] = []
    for index, token in enumerate(tokens):
        if token.text == DEVICE:
            edits += _edit_device(tokens, index)
            if is_ours:
                edits += _edit_value(tokens, index)
        elif token.kind in ("string", "bytes"):
            edits += _edit_raw(token)
        elif _text(tokens, index - 1) == "." and _text(tokens, index + 1) == "(":
            edits += _edit_method(tokens, index)
    return _apply(expression, edits)


def _edit_device(tokens: tuple[Token, ...], index: int) -> list[Edit]:
    """Make an unknown domain an empty map, and `has(device.field)` true."""
    field, after = _text(tokens, index + 2), index + 3
    if _text(tokens, index + 1) != "." or field not in _FIELDS:
        return []
    is_tested = _text(tokens, index - 2) == "has" and _text(tokens, index - 1) == "("
    is_domain = field in _MAPS and _text(tokens, after) == "."
    tested = after + 2 if is_domain else after
    if is_tested and _text(tokens, tested) == ")":
        return [(tokens[index - 2].start, tokens[tested].end, "true")]
    if field not in _MAPS:
        return []
    if _text(tokens, after) == "." and _text(tokens, after + 1) == "?":
        return _edit_optional(tokens, index, after)
    if _text(tokens, after) == ".":
        return _edit_domain(tokens, after)
    end = closing(tokens, after) if _text(tokens, after) == "[" else None
    if end is None:
        return []
    last = tokens[end].end
    if _text(tokens, after + 1) == "?":
        start = _start_of(tokens, index)
        return [(start, start, "optional.of("), (last, last, ".orValue({}))")]
    first = tokens[after].end
    return [(first, first, "?"), (last, last, ".orValue({})")]


def _start_of(tokens: tuple[Token, ...], device: int) -> int:
    return tokens[device - 1 if _text(tokens, device - 1) == "." else device].start


def _edit_optional(tokens: tuple[Token, ...], device: int, dot: int) -> list[Edit]:
    """Write `device.attributes.?domain` with brackets: there always is one."""
    if dot + 2 >= len(tokens) or tokens[dot + 2].kind != "name":
        return []
    name, start = tokens[dot + 2], _start_of(tokens, device)
    domain = f'[?"{name.text}"].orValue({{}}))'
    return [(start, start, "optional.of("), (tokens[dot].start, name.end, domain)]


def _edit_value(tokens: tuple[Token, ...], index: int) -> list[Edit]:
    """Write the device as a value by the name of a variable; its fields stay."""
    token, after = tokens[index], _text(tokens, index + 1)
    optional = _text(tokens, index + 2) == "?"
    is_field = after == "." and not (optional and _text(tokens, index + 3) in _FIELDS)
    before = _text(tokens, index - 2) + _text(tokens, index - 1)
    is_of_other = before.endswith(".") or before == ".?"
    if token.kind != "name" or is_field or is_of_other or after == "(":
        return []
    return [(token.start, token.end, WHOLE)]


def _edit_raw(token: Token) -> list[Edit]:
    """Write a raw literal that ends in a backslash with escapes."""
    text = token.text.lstrip("bB")
    if text[0] not in "rR":
        return []
    quotes = 3 if text[1:4] in ('"' * 3, "'" * 3) and len(text) > 6 else 1
    if text[-quotes - 1] != "\\" or len(text) <= 2 * quotes + 1:
        return []
    mark = "b" if token.kind == "bytes" else ""
    return [(token.start, token.end, mark + text[1:].replace("\\", "\\\\"))]


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
