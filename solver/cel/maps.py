"""What `transformMap` and `transformMapEntry` insert with, which the engine lacks.

The engine expands and checks these macros and has no code for the function that they
call. So a checked expression that calls it is loaded again under a name that is ours.
Runs inside the sandbox.

Source: cel-go, ext/comprehensions.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cel_expr_python import cel
from google.protobuf import wrappers_pb2

from solver.cel.messages import (
    BOOL,
    DYN,
    INT,
    QUANTITY_TYPE,
    SCALARS,
    STRING,
    InputError,
    call,
    function,
    give,
)

_THEIRS, _OURS = b"cel.@mapInsert", b"cel.mapInsert_"
"""Equally long, so that nothing else of the bytes changes."""
_NAMED = re.compile(rb"[\n\x12]\x0e" + re.escape(_THEIRS))
"""As the name of a function or of a reference; a text has another tag before it."""
_MAP = cel.Type.Map(DYN, DYN)
_KEYS = {"int": INT, "uint": cel.Type.UINT, "bool": BOOL, "string": STRING}
_VALUES = {
    **SCALARS,
    "list": cel.Type.List(DYN),
    "map": _MAP,
    "null": cel.Type.NULL,
    "message": QUANTITY_TYPE,
}


def declare_functions() -> list[Any]:
    """Declare the function by the kinds of keys and values: Python is given no type."""
    inserts = (
        call(
            f"insert_{key}_{value}",
            _MAP,
            _MAP,
            of_key,
            of_value,
            impl=_insert_unsigned if value == "uint" else _insert,
        )
        for key, of_key in _KEYS.items()
        for value, of_value in _VALUES.items()
    )
    return [
        function(_OURS.decode(), *inserts, call("merge", _MAP, _MAP, _MAP, impl=_merge))
    ]


def name_insertion(checked: bytes, load: Callable[[bytes], Any]) -> Any | None:
    """Load a checked expression that inserts into maps; None: it does not.

    Raises:
        ValueError: a text in it is the engine's name for that.
    """
    count = checked.count(_THEIRS)
    if count == 0:
        return None
    if len(_NAMED.findall(checked)) != count:
        raise ValueError(f"{_THEIRS.decode()!r} is no text beside transformMap")
    return load(checked.replace(_THEIRS, _OURS))


def _insert(entries: dict[Any, Any], key: Any, value: Any) -> Any:
    return give({**entries, **_take_new(entries, {key: value})})


def _insert_unsigned(entries: dict[Any, Any], key: Any, value: int) -> Any:
    """Insert an unsigned value: Python is handed the values before it as ints."""
    values = {**entries, **_take_new(entries, {key: value})}
    return {
        each: wrappers_pb2.UInt64Value(value=of) if type(of) is int else give(of)
        for each, of in values.items()
    }


def _merge(entries: dict[Any, Any], more: dict[Any, Any]) -> Any:
    return give({**entries, **_take_new(entries, more)})


def _take_new(entries: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key in more:
        if key in entries:
            raise InputError(f"insert failed: key {key} already exists")
    return more
