"""What a selector can see of a device, found without running it.

An expression's answer depends on the driver and on the attributes and capacities that
it names. Whoever names nothing that we recognise is taken to read everything: more
work, never a wrong answer. Works on tokens, knows no CEL engine and never raises.
"""

from __future__ import annotations

from msgspec import Struct

from solver.cache import cached
from solver.selectors.tokens import Token, read_literal, tokens_of

MAX_EXPRESSION_BYTES = 10 * 1024
"""Longer ones are refused unread (DRA: CELSelectorExpressionMaxLength)."""
WHOLE = ""
"""In place of an identifier: the whole domain."""


class Footprint(Struct, frozen=True, cache_hash=True):
    """What an expression can see besides the driver; `everything` includes all else."""

    attributes: tuple[tuple[str, str], ...] = ()
    """(domain, identifier); an empty identifier is all of the domain."""
    capacity: tuple[tuple[str, str], ...] = ()
    """(domain, identifier); an empty identifier is all of the domain."""
    multiple: bool = False
    """`device.allowMultipleAllocations`."""
    everything: bool = False


EVERYTHING = Footprint(everything=True)
NOTHING = Footprint()
_MAPS = ("attributes", "capacity")
_FIELDS = frozenset({*_MAPS, "driver", "allowMultipleAllocations"})
# Tokens between which `"x" in m` is a whole operand: nothing binds tighter outside.
_BEFORE = frozenset({"(", "[", "{", ",", "?", ":", "&&", "||"})
_AFTER = frozenset({")", "]", "}", ",", "?", ":", "&&", "||", "==", "!="})


@cached(bound=8192)
def footprint_of(expression: str) -> Footprint:
    """Find what an expression can see of a device."""
    if is_too_long(expression):
        return NOTHING
    tokens = tokens_of(expression.removeprefix("="))
    if tokens is None:
        return EVERYTHING
    accesses: dict[str, set[tuple[str, str]]] = {name: set() for name in _MAPS}
    multiple = False
    for index, token in enumerate(tokens):
        if token.text not in ("device", "`device`"):
            continue
        field = _read_name_after_dot(tokens, index + 1)
        if field not in _FIELDS:
            return EVERYTHING
        multiple = multiple or field == "allowMultipleAllocations"
        if field in accesses:
            access = _read_access(tokens, index)
            if access is None:
                return EVERYTHING
            accesses[field].add(access)
    return Footprint(
        tuple(sorted(accesses["attributes"])),
        tuple(sorted(accesses["capacity"])),
        multiple,
    )


def is_too_long(expression: str) -> bool:
    """True if an expression is refused before it is parsed."""
    return (
        len(expression) > MAX_EXPRESSION_BYTES
        or len(expression.encode(errors="replace")) > MAX_EXPRESSION_BYTES
    )


def _read_access(tokens: tuple[Token, ...], device: int) -> tuple[str, str] | None:
    """Find what is read of the map at `device.attributes`; None: unknown."""
    domain = _read_key(tokens, device + 3)
    member = _read_membership(tokens, device)
    if domain is None:
        alone = member is not None and _text_at(tokens, device + 3) in _AFTER
        return (member, WHOLE) if alone and member is not None else None
    name, end = domain
    identifier = _read_key(tokens, end)
    if identifier is not None:
        return name, identifier[0]
    if member is not None and _text_at(tokens, end) in _AFTER:
        return name, member
    return name, WHOLE


def _read_membership(tokens: tuple[Token, ...], device: int) -> str | None:
    """Read the `x` of `"x" in device...`; None: not written so."""
    if device < 2 or tokens[device - 1].text != "in":
        return None
    before = tokens[device - 3].text if device > 2 else "("
    return read_literal(tokens[device - 2]) if before in _BEFORE else None


def _read_key(tokens: tuple[Token, ...], index: int) -> tuple[str, int] | None:
    """Read `.name`, `.?name`, `["name"]` or `[?"name"]`: the name and its end."""
    mark = _text_at(tokens, index)
    if mark not in (".", "["):
        return None
    index += 2 if _text_at(tokens, index + 1) == "?" else 1
    if index >= len(tokens):
        return None
    if mark == ".":
        is_call = _text_at(tokens, index + 1) == "("
        if tokens[index].kind != "name" or is_call:
            return None
        return tokens[index].text, index + 1
    name = read_literal(tokens[index])
    if not name or _text_at(tokens, index + 1) != "]":
        return None
    return name, index + 2


def _read_name_after_dot(tokens: tuple[Token, ...], index: int) -> str:
    return _text_at(tokens, index + 1) if _text_at(tokens, index) == "." else WHOLE


def _text_at(tokens: tuple[Token, ...], index: int) -> str:
    """Read a token's text; past the end an expression reads as closed."""
    return tokens[index].text if index < len(tokens) else ")"
