"""Quantities and semantic versions as CEL values, and what can be done with them.

Runs inside the sandbox.

Source: Kubernetes' CEL libraries `quantity` and `semver`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from contracts.quantity import NANO, Quantity, QuantityError
from solver.cel.messages import (
    BOOL,
    DOUBLE,
    INT,
    QUANTITY,
    QUANTITY_TYPE,
    SEMVER,
    SEMVER_TYPE,
    STRING,
    InputError,
    call,
    function,
    method,
    text_of,
)
from solver.selectors.semver import is_semver, normalize_version, precedence_of

_INT64 = 2**63


def quantity_value(nano: int) -> Any:
    """Make the CEL value of a quantity; equal amounts are equal values."""
    return QUANTITY(value=str(nano))


def semver_value(text: str) -> Any:
    """Make the CEL value of a version; build metadata does not matter.

    Raises:
        InputError: the text is no Semantic Version 2.0.0.
    """
    if not is_semver(text):
        raise InputError(f"{text[:80]!r} is no semantic version")
    return SEMVER(value=text.partition("+")[0])


def exact_semver_value(text: str) -> Any:
    """Make the CEL value of a version that is to be read back as it was written."""
    return SEMVER(value=text)


def declare_functions() -> list[Any]:
    """Declare all functions and methods over quantities and versions."""
    return [
        function(
            "quantity",
            call("string_quantity", QUANTITY_TYPE, STRING, impl=_parse_quantity),
        ),
        function("isQuantity", call("is_quantity", BOOL, STRING, impl=_is_quantity)),
        function("sign", call("quantity_sign", INT, QUANTITY_TYPE, impl=_sign)),
        function(
            "isInteger",
            method("quantity_is_int", BOOL, QUANTITY_TYPE, impl=_is_integer),
        ),
        function(
            "asInteger", method("quantity_as_int", INT, QUANTITY_TYPE, impl=_as_integer)
        ),
        function(
            "asApproximateFloat",
            method(
                "quantity_float",
                DOUBLE,
                QUANTITY_TYPE,
                impl=lambda value: _nano(value) / NANO,
            ),
        ),
        _sum("add", 1),
        _sum("sub", -1),
        _comparison("compareTo", INT, lambda order: order),
        _comparison("isLessThan", BOOL, lambda order: order < 0),
        _comparison("isGreaterThan", BOOL, lambda order: order > 0),
        function(
            "semver",
            call("string_semver", SEMVER_TYPE, STRING, impl=semver_value),
            call(
                "string_bool_semver",
                SEMVER_TYPE,
                STRING,
                BOOL,
                impl=lambda text, mend: semver_value(
                    normalize_version(text) if mend else text
                ),
            ),
        ),
        function(
            "isSemver",
            call("string_is_semver", BOOL, STRING, impl=is_semver),
            call(
                "string_bool_is_semver",
                BOOL,
                STRING,
                BOOL,
                impl=lambda text, mend: is_semver(
                    normalize_version(text) if mend else text
                ),
            ),
        ),
        *(
            function(
                name, method(f"semver_{name}", INT, SEMVER_TYPE, impl=_part(index))
            )
            for index, name in enumerate(("major", "minor", "patch"))
        ),
    ]


def _comparison(name: str, result: Any, say: Callable[[int], int]) -> Any:
    """Declare a method of quantities and versions with one implementation."""
    return function(
        name,
        method(
            f"quantity_{name}",
            result,
            QUANTITY_TYPE,
            QUANTITY_TYPE,
            impl=lambda left, right: say(_compare(left, right)),
        ),
        method(f"semver_{name}", result, SEMVER_TYPE, SEMVER_TYPE),
    )


def _sum(name: str, sign: int) -> Any:
    def impl(left: Any, right: Any) -> Any:
        amount = right * NANO if isinstance(right, int) else _nano(right)
        return quantity_value(_nano(left) + sign * amount)

    return function(
        name,
        method(
            f"quantity_{name}", QUANTITY_TYPE, QUANTITY_TYPE, QUANTITY_TYPE, impl=impl
        ),
        method(f"quantity_{name}_int", QUANTITY_TYPE, QUANTITY_TYPE, INT, impl=impl),
    )


def _parse_quantity(text: str) -> Any:
    try:
        return quantity_value(Quantity.parse(text).nano)
    except QuantityError as error:
        raise InputError(f"quantity: {error}") from error


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _nano(value: Any) -> int:
    return int(text_of(value, QUANTITY))


def _sign(value: Any) -> int:
    nano = _nano(value)
    return (nano > 0) - (nano < 0)


def _is_integer(value: Any) -> bool:
    whole, rest = divmod(_nano(value), NANO)
    return not rest and -_INT64 <= whole < _INT64


def _as_integer(value: Any) -> int:
    if not _is_integer(value):
        raise InputError("cannot convert value to integer")
    return _nano(value) // NANO


def _compare(left: Any, right: Any) -> int:
    first: Any
    second: Any
    if isinstance(left, SEMVER):
        first, second = precedence_of(left.value), precedence_of(text_of(right, SEMVER))
    else:
        first, second = _nano(left), _nano(right)
    return int(first > second) - int(first < second)


def _part(index: int) -> Callable[[Any], int]:
    def impl(value: Any) -> int:
        number = int(text_of(value, SEMVER).partition("-")[0].split(".")[index])
        if number >= _INT64:
            raise InputError("integer overflow")
        return number

    return impl
