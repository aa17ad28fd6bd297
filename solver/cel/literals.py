"""List and map literals must be of one type, which this engine does not ask by itself.

Kubernetes compiles selectors with that rule, so `[device.attributes["d"].x, 7]` is no
selector. Reads the checked expression that the engine gives out: protobuf, of which
only a few fields matter, so it is read by hand.

Source: cel.dev/expr checked.proto and syntax.proto; cel-go,
ValidateHomogeneousAggregateLiterals.
"""

from __future__ import annotations

from collections.abc import Iterator

_ANY_VALUE, _TYPE_MAP, _EXPR = 2, 3, 4
_KEY, _VALUE = 1, 2
_ID, _CALL, _LIST, _STRUCT = 2, 6, 7, 8
_TARGET, _FUNCTION, _ARGUMENTS = 1, 2, 3
_ELEMENTS, _OPTIONAL_INDICES = 1, 2
_ENTRIES, _MAP_KEY, _MAP_VALUE = 2, 3, 4
_PARTS = frozenset({2, 4, 5, 6, 7})
"""Expressions in a comprehension: its range, start, condition, step and result."""
_EXEMPT = b"format"
"""The function whose arguments may be of any types."""
_VARINT, _FIXED64, _BYTES = 0, 1, 2
_DYN, _PRIMITIVE = 1, 3
_PRIMITIVES = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
Field = tuple[int, int | bytes]


def find_mismatch(checked: bytes) -> str:
    """Return how a literal mixes types; empty: none does."""
    (value,) = all_of(checked, _ANY_VALUE)
    types = {}
    for entry in all_of(value, _TYPE_MAP):
        fields = dict(fields_of(entry))
        types[fields.get(_KEY, 0)] = fields.get(_VALUE, b"")
    for expression in all_of(value, _EXPR):
        for first, other in _find_mismatches(expression, types):
            return f"expected type '{_name(first)}' but found '{_name(other)}'"
    return ""


Types = dict[int | bytes, int | bytes]


def _find_mismatches(expression: bytes, types: Types) -> Iterator[tuple[bytes, bytes]]:
    """Go through the literals of an expression that mix types."""
    for number, value in fields_of(expression):
        if not isinstance(value, bytes):
            continue
        if number == _CALL and all_of(value, _FUNCTION) == [_EXEMPT]:
            yield from _below(all_of(value, _TARGET), types)
            continue
        if number == _LIST:
            is_optional = any(n == _OPTIONAL_INDICES for n, _ in fields_of(value))
            if not is_optional:
                yield from _unequal(all_of(value, _ELEMENTS), types)
        if number == _STRUCT:
            entries = all_of(value, _ENTRIES)
            for column in (_MAP_KEY, _MAP_VALUE):
                parts = [part for entry in entries for part in all_of(entry, column)]
                yield from _unequal(parts, types)
        yield from _below(_children(number, value), types)


def _below(parts: list[bytes], types: Types) -> Iterator[tuple[bytes, bytes]]:
    for part in parts:
        yield from _find_mismatches(part, types)


def _children(number: int, value: bytes) -> list[bytes]:
    match number:
        case 5:  # select
            return all_of(value, _TARGET)
        case 6:  # call
            return [*all_of(value, _TARGET), *all_of(value, _ARGUMENTS)]
        case 7:  # list
            return all_of(value, _ELEMENTS)
        case 8:  # struct
            entries = all_of(value, _ENTRIES)
            return [
                part
                for entry in entries
                for column in (_MAP_KEY, _MAP_VALUE)
                for part in all_of(entry, column)
            ]
        case 9:  # comprehension
            return [part for field in sorted(_PARTS) for part in all_of(value, field)]
        case _:
            return []


def _unequal(parts: list[bytes], types: Types) -> Iterator[tuple[bytes, bytes]]:
    if not parts:
        return
    first, *others = (
        types.get(dict(fields_of(part)).get(_ID, 0), b"") for part in parts
    )
    for kind in others:
        if kind != first and isinstance(kind, bytes) and isinstance(first, bytes):
            yield first, kind
            return


def _name(kind: bytes) -> str:
    for number, value in fields_of(kind):
        if number == _DYN:
            return "dyn"
        if number == _PRIMITIVE and isinstance(value, int):
            return _PRIMITIVES.get(value, "unknown")
    return "another type"


def all_of(data: bytes, number: int) -> list[bytes]:
    """List the messages and texts of one field."""
    return [v for n, v in fields_of(data) if n == number and isinstance(v, bytes)]


def fields_of(data: bytes) -> Iterator[Field]:
    """Go through the fields of a protobuf message: (number, value)."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, place = _varint(data, place)
            yield number, value
        elif wire == _BYTES:
            size, place = _varint(data, place)
            yield number, data[place : place + size]
            place += size
        else:
            place += 8 if wire == _FIXED64 else 4


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
