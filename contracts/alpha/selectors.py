"""CEL selectors of v1alpha2 -> those of v1.

A selector of v1alpha2 sees one map for each type of attribute:
`attributes.string["color"] == "black"`. In v1 the attributes of a driver are one map,
and amounts are capacities. Only what refers to these maps is rewritten; the functions
of their values are the same.

Source: k8s.io/dynamic-resource-allocation v0.30 structured/namedresources/cel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

TYPES = ("quantity", "bool", "int", "intslice", "string", "stringslice", "version")
MOST_NAME = 32
"""Characters of an attribute's name, DeviceMaxIDLength."""
_TOKEN = re.compile(
    r"""
    (?P<text>[rRbB]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    | (?P<name>[A-Za-z_]\w*)
    | (?P<space>\s+|//[^\n]*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN_TEXT = re.compile(r"""(["'])([A-Za-z0-9._-]*)\1""")
_ALWAYS = re.compile(r"\s*true\s*")


class SelectorError(ValueError):
    """A selector that has no form in v1."""


def rename_attribute(name: str) -> str:
    """Name an attribute as v1 does: v1alpha2 takes DNS subdomains, v1 C identifiers.

    Raises:
        SelectorError: the name is too long.
    """
    renamed = re.sub(r"\W", "_", name, flags=re.ASCII)
    if renamed[:1].isdigit():
        renamed = f"_{renamed}"
    if len(renamed) > MOST_NAME:
        raise SelectorError(
            f"attribute {name}: v1 takes names of at most {MOST_NAME} characters"
        )
    return renamed


def translate_selector(expression: str, driver: str) -> str:
    """Say a selector of v1alpha2 in v1, for devices of a driver; "" matches any.

    Raises:
        SelectorError: it uses the maps of attributes in a way that v1 has no form of.
    """
    if _ALWAYS.fullmatch(expression):
        return ""
    tokens = list(_split(expression))
    written: list[str] = []
    at = 0
    while at < len(tokens):
        found = _find_map(tokens, at)
        if found is None:
            written.append(tokens[at][1])
            at += 1
            continue
        kind, at = found
        values = "capacity" if kind == "quantity" else "attributes"
        where = f'device.{values}["{driver}"]'
        if _is_looked_up(written):
            _rename_last(written)
            written.append(where)
            continue
        name, at = _read_key(tokens, at, kind)
        written.append(f"{where}.{rename_attribute(name)}")
    return "".join(written)


def _split(expression: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(expression):
        yield match.lastgroup or "", match.group()


def _skip_space(tokens: list[tuple[str, str]], at: int) -> int:
    while at < len(tokens) and tokens[at][0] == "space":
        at += 1
    return at


def _next_is(tokens: list[tuple[str, str]], at: int, text: str) -> bool:
    at = _skip_space(tokens, at)
    return at < len(tokens) and tokens[at][1] == text


def _find_map(tokens: list[tuple[str, str]], at: int) -> tuple[str, int] | None:
    """Return the type and the end of `attributes.<type>` if it begins here.

    Raises:
        SelectorError: the maps are used as something else.
    """
    if tokens[at] != ("name", "attributes"):
        return None
    before = at - 1
    while before >= 0 and tokens[before][0] == "space":
        before -= 1
    if before >= 0 and tokens[before][1] == ".":
        return None
    if _next_is(tokens, at + 1, "."):
        dot = _skip_space(tokens, at + 1)
        name = _skip_space(tokens, dot + 1)
        if name < len(tokens) and tokens[name][1] in TYPES:
            return tokens[name][1], name + 1
    raise SelectorError(f"attributes has no other fields than {', '.join(TYPES)}")


def _is_looked_up(written: list[str]) -> bool:
    """True if what comes is the right side of `"name" in`."""
    words = [word for word in written if word.strip()]
    return len(words) > 1 and words[-1] == "in"


def _rename_last(written: list[str]) -> None:
    """Rename the attribute before `in`.

    Raises:
        SelectorError: it is no plain text.
    """
    place = len(written) - 1
    while written[place] != "in":
        place -= 1
    place -= 1
    while not written[place].strip():
        place -= 1
    match = _PLAIN_TEXT.fullmatch(written[place])
    if match is None:
        raise SelectorError("the attribute before `in` must be a plain text")
    written[place] = f'"{rename_attribute(match[2])}"'


def _read_key(tokens: list[tuple[str, str]], at: int, kind: str) -> tuple[str, int]:
    """Return the attribute's name and where it ends: `["name"]` or `.name`.

    Raises:
        SelectorError: it is neither.
    """
    if _next_is(tokens, at, "["):
        key = _skip_space(tokens, _skip_space(tokens, at) + 1)
        match = _PLAIN_TEXT.fullmatch(tokens[key][1]) if key < len(tokens) else None
        if match is not None and _next_is(tokens, key + 1, "]"):
            return match[2], _skip_space(tokens, key + 1) + 1
    elif _next_is(tokens, at, "."):
        name = _skip_space(tokens, _skip_space(tokens, at) + 1)
        is_call = _next_is(tokens, name + 1, "(")
        if name < len(tokens) and tokens[name][0] == "name" and not is_call:
            return tokens[name][1], name + 1
    raise SelectorError(f'v1 has only attributes.{kind}["name"] and "name" in it')
