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
    BOOL,
    CIDR_TYPE,
    DYN,
    INT,
    IP_TYPE,
    NAMED_FORMAT_TYPE,
    QUANTITY_TYPE,
    SCALARS,
    SEMVER_TYPE,
    STRING,
    URL_TYPE,
    InputError,
    function,
    give,
    method,
)

MAX_INCLUDED = 48
"""Elements that `includes` looks at (DRA: values of all attributes of a device)."""
_MESSAGES = {
    "semver": SEMVER_TYPE,
    "quantity": QUANTITY_TYPE,
    "ip": IP_TYPE,
    "cidr": CIDR_TYPE,
}
_ORDERED = (int, float, bool, str, bytearray, datetime, timedelta)
"""What the engine hands over of lists that have an order."""
_SUMMED = (int, float, timedelta)
_MOST = timedelta(microseconds=2**63 // 1000)
"""A duration has at most 2**63 ns."""
_FOUND = _MESSAGES | {"url": URL_TYPE, "format": NAMED_FORMAT_TYPE}
_DYN_LIST, _DYN_MAP = cel.Type.List(DYN), cel.Type.Map(DYN, DYN)


def declare_functions() -> list[Any]:
    """Declare the functions of lists."""
    return [
        function("isSorted", method("list_sorted", BOOL, _DYN_LIST, impl=_is_sorted)),
        function("sum", method("list_sum", DYN, _DYN_LIST, impl=_sum)),
        function("min", method("list_min", DYN, _DYN_LIST, impl=_min)),
        function("max", method("list_max", DYN, _DYN_LIST, impl=_max)),
        function("includes", *_includes()),
        _position("indexOf", last=False),
        _position("lastIndexOf", last=True),
    ]


def _includes() -> list[Any]:
    """Accept a list and an element, or two values of a kind."""
    overloads: list[Any] = []
    for name, kind in SCALARS.items():
        impl: Any = _is_included
        many = cel.Type.List(kind)
        overloads.append(method(f"includes_{name}", BOOL, many, kind, impl=impl))
        overloads.append(method(f"same_{name}", BOOL, kind, kind, impl=_is_same))
    # Messages are one kind to the engine: the first overload's code serves all.
    for number, (name, kind) in enumerate(_MESSAGES.items()):
        first = number == 0
        overloads.append(
            method(
                f"includes_{name}",
                BOOL,
                cel.Type.List(kind),
                kind,
                impl=_is_included if first else None,
            )
        )
        overloads.append(
            method(
                f"same_{name}",
                BOOL,
                kind,
                kind,
                impl=_is_same if first else None,
            )
        )
    return overloads


def _position(name: str, *, last: bool) -> Any:
    """Declare a search in lists and in strings, under the name we rewrite it to."""

    def in_list(elements: list[Any], sought: Any) -> int:
        places = [i for i, each in enumerate(elements) if _is_same(each, sought)]
        return places[-1 if last else 0] if places else -1

    def in_text(text: str, sought: str) -> int:
        return text.rfind(sought) if last else text.find(sought)

    def in_text_from(text: str, sought: str, start: int) -> int:
        if start < 0:
            raise InputError(f"index out of range: {start}")
        if start > len(text) or (last and start == len(text)):
            return -1 if sought else len(text)
        if last:
            return text.rfind(sought, 0, start + len(sought))
        return text.find(sought, start)

    return function(
        f"{name}__",
        method(f"string_{name}", INT, STRING, STRING, impl=in_text),
        method(f"string_{name}_from", INT, STRING, STRING, INT, impl=in_text_from),
        *(
            method(f"list_{name}_{kind}", INT, cel.Type.List(of), of, impl=in_list)
            for kind, of in SCALARS.items()
        ),
        *(
            method(
                f"list_{name}_{kind}",
                INT,
                cel.Type.List(of),
                of,
                impl=in_list if number == 0 else None,
            )
            for number, (kind, of) in enumerate(_FOUND.items())
        ),
        *(
            method(f"list_{name}_{kind}", INT, cel.Type.List(of), of, impl=in_list)
            for kind, of in (("list", _DYN_LIST), ("map", _DYN_MAP))
        ),
    )


def _is_same(left: Any, right: Any) -> bool:
    """Compare as CEL does: true is not 1, but 1 is 1.0."""
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right)


def _is_included(elements: list[Any], sought: Any) -> bool:
    for element in elements[:MAX_INCLUDED]:
        if _is_same(element, sought):
            return True
    if len(elements) > MAX_INCLUDED:
        raise InputError(f"includes: more than {MAX_INCLUDED} elements")
    return False


def _is_sorted(elements: list[Any]) -> bool:
    _expect_one_kind(elements, _ORDERED)
    return all(left <= right for left, right in pairwise(elements))


def _sum(elements: list[Any]) -> Any:
    _expect_one_kind(elements, _SUMMED)
    if elements and isinstance(elements[0], timedelta):
        whole = sum(elements, timedelta())
        if not -_MOST <= whole <= _MOST:
            raise InputError("integer overflow")
        return give(whole)
    total = sum(elements)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise InputError("integer overflow")
    return total


def _min(elements: list[Any]) -> Any:
    _expect_one_kind(elements, _ORDERED)
    if not elements:
        raise InputError("min called on empty list")
    return give(min(elements))


def _max(elements: list[Any]) -> Any:
    _expect_one_kind(elements, _ORDERED)
    if not elements:
        raise InputError("max called on empty list")
    return give(max(elements))


def _expect_one_kind(elements: list[Any], kinds: tuple[type, ...]) -> None:
    """Refuse what has no order among itself, or no way back to the engine."""
    types = {type(element) for element in elements}
    if not types <= set(kinds) or (len(types) > 1 and types != {int, float}):
        raise InputError("no such overload")
