"""The checked expression as the engine gives it out, read by hand: nodes and types.

It is protobuf, of which only a few fields matter.

Source: cel.dev/expr checked.proto and syntax.proto.
"""

from __future__ import annotations

from msgspec import Struct

from solver.cel.literals import all_of, fields_of

_ANY_VALUE, _TYPE_MAP, _EXPR = 2, 3, 4
_KINDS = {3: "const", 4: "ident", 5: "select", 6: "call", 7: "list", 8: "map"}
_COMPREHENSION = 9
_PRIMITIVE = 3
_TYPES = {1: "dyn", 6: "list", 7: "map"}
_TEXTS = (5, 6)
"""Primitive types that have a length: string and bytes."""


class CelNode(Struct, frozen=True, kw_only=True):
    """One node: what it is, what it names, and what it is made of."""

    id: int
    kind: str
    name: str = ""
    """Of a variable or function."""
    size: int = 1
    """Of a constant: characters or bytes; 1: a number."""
    is_test: bool = False
    """`has(...)`."""
    parts: tuple[CelNode, ...] = ()
    """Target and arguments; keys and values in turn; of a comprehension its range,
    start, condition, step and result."""
    accumulator: str = ""
    variables: tuple[str, str] = ("", "")

    @property
    def is_bind(self) -> bool:
        """True if a comprehension is a `cel.bind`."""
        range_node, _, condition = self.parts[:3]
        is_empty = range_node.kind == "list" and not range_node.parts
        return is_empty and condition.kind == "const"


class CheckedExpression(Struct, frozen=True, kw_only=True):
    """An expression and what kind of value each node has."""

    root: CelNode
    types: dict[int, str]
    """`scalar`, `text`, `list`, `map`, `dyn` or `other`, by node."""

    @classmethod
    def read(cls, checked: bytes) -> CheckedExpression:
        """Read what the engine serialized."""
        (value,) = all_of(checked, _ANY_VALUE)
        types = {}
        for entry in all_of(value, _TYPE_MAP):
            fields = dict(fields_of(entry))
            kind = fields.get(2, b"")
            types[_number(fields.get(1, 0))] = _kind_of(_bytes(kind))
        (root,) = all_of(value, _EXPR)
        return cls(root=_read(root), types=types)


def _kind_of(kind: bytes) -> str:
    for number, value in fields_of(kind):
        if number == _PRIMITIVE:
            return "text" if value in _TEXTS else "scalar"
        return _TYPES.get(number, "other")
    return "other"


def _read(data: bytes) -> CelNode:
    fields = dict(fields_of(data))
    number = _number(fields.get(2, 0))
    for field, kind in _KINDS.items():
        if field in fields:
            return _read_kind(number, kind, _bytes(fields[field]))
    return _read_comprehension(number, _bytes(fields.get(_COMPREHENSION, b"")))


def _read_kind(number: int, kind: str, data: bytes) -> CelNode:
    fields = dict(fields_of(data))
    match kind:
        case "const":
            return CelNode(id=number, kind=kind, size=_size_of(fields))
        case "ident":
            return CelNode(id=number, kind=kind, name=_bytes(fields[1]).decode())
        case "select":
            operand = _read(_bytes(fields[1]))
            is_test = bool(fields.get(3, 0))
            return CelNode(id=number, kind=kind, is_test=is_test, parts=(operand,))
        case "call":
            name = _bytes(fields[2]).decode()
            parts = _read_all([*all_of(data, 1), *all_of(data, 3)])
            return CelNode(id=number, kind=kind, name=name, parts=parts)
        case "list":
            return CelNode(id=number, kind=kind, parts=_read_all(all_of(data, 1)))
        case _:
            entries = all_of(data, 2)
            pairs = [part for e in entries for n in (3, 4) for part in all_of(e, n)]
            return CelNode(id=number, kind="map", parts=_read_all(pairs))


def _read_comprehension(number: int, data: bytes) -> CelNode:
    fields = dict(fields_of(data))
    return CelNode(
        id=number,
        kind="comprehension",
        accumulator=_bytes(fields[3]).decode(),
        variables=(
            _bytes(fields[1]).decode(),
            _bytes(fields.get(8, b"")).decode(),
        ),
        parts=_read_all([_bytes(fields[field]) for field in (2, 4, 5, 6, 7)]),
    )


def _read_all(parts: list[bytes]) -> tuple[CelNode, ...]:
    return tuple(map(_read, parts))


def _size_of(constant: dict[int, int | bytes]) -> int:
    if 6 in constant:
        return len(_bytes(constant[6]).decode())
    return len(_bytes(constant[7])) if 7 in constant else 1


def _bytes(value: int | bytes) -> bytes:
    return value if isinstance(value, bytes) else b""


def _number(value: int | bytes) -> int:
    return value if isinstance(value, int) else 0
