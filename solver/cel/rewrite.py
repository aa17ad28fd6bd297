"""An expression as the engine must see it, so that an unknown domain is an empty map.

The library copies maps and has no hook for missing keys. So the evaluator offers an
empty map for every domain that an expression may look up, and the few places that
look at the map of domains as a whole are renamed to one with real domains only.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"""(?P<string>[rR]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))"""
    r"""|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<comment>//[^\n]*)|(?P<mark>\S)"""
)
_TRIPLE = re.compile("\"\"\"|'''")
Tokens = list[tuple[str, str]]


@lru_cache(maxsize=8192)
def named_domains(expression: str) -> tuple[str, ...]:
    """List the domains that an expression may look up: each of its plain strings.

    An unknown domain reads as an empty map, so the evaluator offers one for each.
    """
    found = {
        text.lstrip("rR")[1:-1]
        for kind, text in _tokens(expression)
        if kind == "string" and "\\" not in text
    }
    found |= {text for kind, text in _tokens(expression) if kind == "name"}
    return tuple(sorted(found))


@lru_cache(maxsize=8192)
def bare_maps(expression: str) -> str:
    """Rename `device.attributes` and `device.capacity` where no domain is selected.

    `"d" in device.attributes` and macros over the map must see real domains only.
    """
    if _TRIPLE.search(expression):
        return expression
    pieces, position = [], 0
    matches = [
        match for match in _TOKEN.finditer(expression) if match.lastgroup != "comment"
    ]
    for index in range(len(matches) - 2):
        texts = [match.group() for match in matches[index : index + 4]]
        if texts[:2] != ["device", "."] or texts[2] not in ("attributes", "capacity"):
            continue
        following = texts[3] if len(texts) > 3 else ""
        macro = following == "." and _is_call(matches, index + 4)
        if following not in ("[", ".") or macro:
            end = matches[index + 2].end()
            pieces.append(expression[position:end] + "__seen")
            position = end
    return "".join(pieces) + expression[position:]


def _is_call(matches: list[re.Match[str]], index: int) -> bool:
    return index + 1 < len(matches) and matches[index + 1].group() == "("


def _tokens(expression: str) -> Tokens:
    return [
        (match.lastgroup or "", match.group())
        for match in _TOKEN.finditer(expression)
        if match.lastgroup != "comment"
    ]
