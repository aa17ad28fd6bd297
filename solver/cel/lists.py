"""Kubernetes' methods of lists, `includes`, and the string methods of those names.

An optional or dynamic parameter never matches when the engine calls Python, so each
method has one overload for each kind of argument. Runs inside the sandbox.

Source: Kubernetes' CEL library `lists`; KEP-5491 for `includes`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from cel_expr_python import cel

from solver.cel.messages import (
    CIDR_TYPE,
    IP_TYPE,
    QUANTITY_TYPE,
    SEMVER_TYPE,
    InputError,
    function,
    method,
)

MAX_INCLUDED = 48
"""Elements that `includes` looks at (DRA: values of all attributes of a device)."""
_SCALARS = {
    "int": cel.Type.INT,
    "uint": cel.Type.UINT,
    "double": cel.Type.DOUBLE,
    "bool": cel.Type.BOOL,
    "string": cel.Type.STRING,
    "bytes": cel.Type.BYTES,
    "timestamp": cel.Type.TIMESTAMP,
    "duration": cel.Type.DURATION,
}
_MESSAGES = {
    "semver": SEMVER_TYPE,
    "quantity": QUANTITY_TYPE,
    "ip": IP_TYPE,
    "cidr": CIDR_TYPE,
}
_RETURNABLE = (int, float, bool, str, bytes)
"""Of these a Python function may give any; of durations and messages it may not."""
_DYN_LIST = cel.Type.List(cel.Type.DYN)


def functions() -> list[Any]:
    """Declare them all."""
    t = cel.Type
    return [
        function("isSorted", method("list_sorted", t.BOOL, _DYN_LIST, impl=_is_sorted)),
        function("sum", method("list_sum", t.DYN, _DYN_LIST, impl=_sum)),
        function("min", method("list_min", t.DYN, _DYN_LIST, impl=_min)),
        function("max", method("list_max", t.DYN, _DYN_LIST, impl=_max)),
        function("includes", *_includes()),
        _position("indexOf", last=False),
        _position("lastIndexOf", last=True),
    ]


def _includes() -> list[Any]:
    """Accept a list and an element, or two values of a kind."""
    found: list[Any] = []
    for name, kind in _SCALARS.items():
        impl: Any = _is_included
        many = cel.Type.List(kind)
        found.append(method(f"includes_{name}", cel.Type.BOOL, many, kind, impl=impl))
        found.append(method(f"same_{name}", cel.Type.BOOL, kind, kind, impl=_is_same))
    for number, (name, kind) in enumerate(_MESSAGES.items()):
        first = number == 0
        found.append(
            method(
                f"includes_{name}",
                cel.Type.BOOL,
                cel.Type.List(kind),
                kind,
                impl=_is_included if first else None,
            )
        )
        found.append(
            method(
                f"same_{name}",
                cel.Type.BOOL,
                kind,
                kind,
                impl=_is_same if first else None,
            )
        )
    return found


def _position(name: str, *, last: bool) -> Any:
    """Declare a search in lists and in strings, under the name we rewrite it to."""
    t = cel.Type

    def in_list(items: list[Any], wanted: Any) -> int:
        places = [i for i, item in enumerate(items) if _is_same(item, wanted)]
        return places[-1 if last else 0] if places else -1

    def in_text(text: str, wanted: str) -> int:
        return text.rfind(wanted) if last else text.find(wanted)

    def in_text_from(text: str, wanted: str, start: int) -> int:
        if not 0 <= start <= len(text):
            raise InputError(f"index out of range: {start}")
        if last:
            return text.rfind(wanted, 0, start + len(wanted))
        return text.find(wanted, start)

    s = t.STRING
    return function(
        f"{name}__",
        method(f"string_{name}", t.INT, s, s, impl=in_text),
        method(f"string_{name}_from", t.INT, s, s, t.INT, impl=in_text_from),
        *(
            method(f"list_{name}_{kind}", t.INT, t.List(of), of, impl=in_list)
            for kind, of in _SCALARS.items()
        ),
    )


def _is_same(left: Any, right: Any) -> bool:
    """Compare as CEL does: true is not 1, but 1 is 1.0."""
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right)


def _is_included(items: list[Any], wanted: Any) -> bool:
    for item in items[:MAX_INCLUDED]:
        if _is_same(item, wanted):
            return True
    if len(items) > MAX_INCLUDED:
        raise InputError(f"includes: more than {MAX_INCLUDED} elements")
    return False


def _is_sorted(items: list[Any]) -> bool:
    _expect_one_kind(items, (*_RETURNABLE, datetime, timedelta))
    return all(left <= right for left, right in pairwise(items))


def _sum(items: list[Any]) -> Any:
    _expect_one_kind(items, (int, float))
    total = sum(items)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise InputError("integer overflow")
    return total


def _min(items: list[Any]) -> Any:
    _expect_one_kind(items, _RETURNABLE)
    if not items:
        raise InputError("min called on empty list")
    return min(items)


def _max(items: list[Any]) -> Any:
    _expect_one_kind(items, _RETURNABLE)
    if not items:
        raise InputError("max called on empty list")
    return max(items)


def _expect_one_kind(items: list[Any], kinds: tuple[type, ...]) -> None:
    """Refuse what has no order among itself, or no way back to the engine."""
    found = {type(item) for item in items}
    if not found <= set(kinds) or (len(found) > 1 and found != {int, float}):
        raise InputError("no such overload")
