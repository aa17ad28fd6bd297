"""What a selector can see of a device, found without running it.

An expression's answer depends on the driver and on the attributes and capacities that
it names. Whoever names nothing that we recognise is taken to read everything: more
work, never a wrong answer. Works on tokens, knows no CEL engine and never raises.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

_TOKEN = re.compile(
    r"""(?P<string>[rR]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))"""
    r"""|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<comment>//[^\n]*)|(?P<mark>\S)"""
)
_TRIPLE = re.compile("\"\"\"|'''")


class Reads(Struct, frozen=True):
    """What an expression can see; `everything` includes all else."""

    attributes: tuple[tuple[str, str], ...] = ()
    """(domain, identifier); an empty identifier is all of the domain."""
    capacity: tuple[tuple[str, str], ...] = ()
    """Likewise."""
    multiple: bool = False
    """`device.allowMultipleAllocations`."""
    everything: bool = False


EVERYTHING = Reads(everything=True)


@lru_cache(maxsize=8192)
def reads(expression: str) -> Reads:
    """Find what an expression can see of a device."""
    if _TRIPLE.search(expression):
        return EVERYTHING
    tokens = _tokens(expression)
    found: dict[str, set[tuple[str, str]]] = {"attributes": set(), "capacity": set()}
    multiple = False
    for index, token in enumerate(tokens):
        if token != ("name", "device") or _texts(tokens, index - 1, 1) == ["."]:
            continue
        field = _selection(tokens, index + 1)
        if field is None or field[0] not in _FIELDS:
            return EVERYTHING
        multiple = multiple or field[0] == "allowMultipleAllocations"
        if field[0] in found:
            read = _read(tokens, index, field[1])
            if read is None:
                return EVERYTHING
            found[field[0]].add(read)
    return Reads(
        tuple(sorted(found["attributes"])), tuple(sorted(found["capacity"])), multiple
    )


_FIELDS = frozenset({"driver", "attributes", "capacity", "allowMultipleAllocations"})
Tokens = list[tuple[str, str]]


def _texts(tokens: Tokens, start: int, count: int) -> list[str]:
    return [text for _, text in tokens[max(start, 0) : max(start + count, 0)]]


def _selection(tokens: Tokens, index: int) -> tuple[str, int] | None:
    """Read `.name`, `.?name`, `["name"]` or `[?"name"]`; gives the name and the end."""
    match _texts(tokens, index, 4):
        case [".", "?", _, *_] if tokens[index + 2][0] == "name":
            return tokens[index + 2][1], index + 3
        case [".", _, *_] if tokens[index + 1][0] == "name":
            return tokens[index + 1][1], index + 2
        case ["[", "?", _, "]"] if tokens[index + 2][0] == "string":
            return _quoted(tokens[index + 2][1], index + 4)
        case ["[", _, "]", *_] if tokens[index + 1][0] == "string":
            return _quoted(tokens[index + 1][1], index + 3)
        case _:
            return None


def _quoted(text: str, end: int) -> tuple[str, int] | None:
    return None if "\\" in text else (text.lstrip("rR")[1:-1], end)


def _read(tokens: Tokens, device: int, after: int) -> tuple[str, str] | None:
    """Read which domain and identifier follow `device.attributes`; None: unclear."""
    member = None
    if _texts(tokens, device - 1, 1) == ["in"] and device >= 2:
        kind, text = tokens[device - 2]
        quoted = _quoted(text, 0) if kind == "string" else None
        member = quoted[0] if quoted is not None else None
    domain = _selection(tokens, after)
    if domain is None:
        is_member = member is not None and _texts(tokens, after, 1) not in (
            ["["],
            ["."],
        )
        return (member, "") if is_member and member is not None else None
    name, end = domain
    identifier = _selection(tokens, end)
    if identifier is not None and _texts(tokens, identifier[1], 1) != ["("]:
        return name, identifier[0]
    if member is not None and identifier is None and _texts(tokens, end, 1) != ["["]:
        return name, member
    return name, ""


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
