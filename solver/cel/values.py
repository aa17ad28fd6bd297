"""Quantities and semantic versions as CEL values, and what can be done with them.

The engine calls Python functions by the kind of their arguments only, so each function
here serves every type that has a method of its name. Runs inside the sandbox.

Source: Kubernetes' CEL libraries `quantity` and `semver`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from contracts.quantity import NANO, Quantity, QuantityError

PACKAGE = "kubernetes"
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
    r"(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_STRING, _OPTIONAL = 9, 1


def _messages() -> tuple[descriptor_pool.DescriptorPool, Any, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="moorings_cel.proto", package=PACKAGE, syntax="proto3"
    )
    for name in ("Quantity", "Semver"):
        message = file.message_type.add(name=name)
        message.field.add(name="value", number=1, type=_STRING, label=_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in ("Quantity", "Semver")
    ]
    return pool, found[0], found[1]


POOL, QUANTITY, SEMVER = _messages()
QUANTITY_TYPE = cel.Type(f"{PACKAGE}.Quantity")
SEMVER_TYPE = cel.Type(f"{PACKAGE}.Semver")


def quantity_value(nano: int) -> Any:
    """Make the CEL value of a quantity; equal amounts are equal values."""
    return QUANTITY(value=str(nano))


def semver_value(text: str) -> Any:
    """Make the CEL value of a version; build metadata does not matter.

    Raises:
        ValueError: the text is no Semantic Version 2.0.0.
    """
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise ValueError(f"Invalid character(s) found in version {text!r}")
    return SEMVER(value=text.partition("+")[0])


def normalized(text: str) -> str:
    """Strip a `v` and leading zeros, and pad missing parts."""
    core = re.match(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?", text)
    if core is None:
        return text
    numbers = ".".join(str(int(part or "0")) for part in core.groups())
    return numbers + text[core.end() :]


def _quantity(text: str) -> Any:
    try:
        return quantity_value(Quantity.parse(text).nano)
    except QuantityError as error:
        raise ValueError(f"quantity: {error}") from error


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _nano(value: Any) -> int:
    return int(value.value)


def _rank(value: Any) -> Any:
    """Order a value among its kind."""
    if isinstance(value, SEMVER):
        return _precedence(value.value)
    return _nano(value)


def _precedence(text: str) -> tuple[Any, ...]:
    """Order versions as Semantic Versioning 2.0.0, section 11, does."""
    core, _, pre = text.partition("-")
    numbers = tuple(int(part) for part in core.split("."))
    if not pre:
        return (numbers, (1,))
    parts = tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part)
        for part in pre.split(".")
    )
    return (numbers, (0, parts))


def _compare(left: Any, right: Any) -> int:
    first, second = _rank(left), _rank(right)
    return int(first > second) - int(first < second)


def _as_integer(value: Any) -> int:
    whole, rest = divmod(_nano(value), NANO)
    if rest or not -(2**63) <= whole < 2**63:
        raise ValueError("cannot convert value to integer")
    return whole


def _is_integer(value: Any) -> bool:
    whole, rest = divmod(_nano(value), NANO)
    return not rest and -(2**63) <= whole < 2**63


def _amount(value: Any) -> int:
    return value * NANO if isinstance(value, int) else _nano(value)


def _part(value: Any, index: int) -> int:
    return int(value.value.partition("-")[0].split(".")[index])


def _is_semver(text: str) -> bool:
    return _SEMVER.fullmatch(text) is not None


def functions() -> list[Any]:
    """Declare all functions and methods over quantities and versions."""
    q, v, t = QUANTITY_TYPE, SEMVER_TYPE, cel.Type

    def function(name: str, *overloads: Any) -> Any:
        return cel.FunctionDecl(name, list(overloads))

    def over(
        name: str, result: Any, *parameters: Any, impl: Any = None, member: bool = True
    ) -> Any:
        more = {} if impl is None else {"impl": impl}
        return cel.Overload(
            name,
            return_type=result,
            parameters=list(parameters),
            is_member=member,
            **more,
        )

    def both(name: str, result: Any, impl: Any) -> Any:
        """Declare a method of quantities and versions with one implementation."""
        return function(
            name,
            over(f"quantity_{name}", result, q, q, impl=impl),
            over(f"semver_{name}", result, v, v),
        )

    def new(name: str, result: Any, impl: Any) -> Any:
        return over(name, result, t.STRING, impl=impl, member=False)

    def normal(name: str, result: Any, impl: Any) -> Any:
        return over(name, result, t.STRING, t.BOOL, impl=impl, member=False)

    return [
        function("quantity", new("string_quantity", q, _quantity)),
        function("isQuantity", new("string_is_quantity", t.BOOL, _is_quantity)),
        function(
            "sign",
            over(
                "quantity_sign",
                t.INT,
                q,
                impl=lambda a: (_nano(a) > 0) - (_nano(a) < 0),
                member=False,
            ),
        ),
        function("isInteger", over("quantity_is_int", t.BOOL, q, impl=_is_integer)),
        function("asInteger", over("quantity_as_int", t.INT, q, impl=_as_integer)),
        function(
            "asApproximateFloat",
            over(
                "quantity_float",
                t.DOUBLE,
                q,
                impl=lambda a: float(Fraction(_nano(a), NANO)),
            ),
        ),
        function(
            "add",
            over(
                "quantity_add",
                q,
                q,
                q,
                impl=lambda a, b: quantity_value(_nano(a) + _amount(b)),
            ),
            over(
                "quantity_add_int",
                q,
                q,
                t.INT,
                impl=lambda a, b: quantity_value(_nano(a) + _amount(b)),
            ),
        ),
        function(
            "sub",
            over(
                "quantity_sub",
                q,
                q,
                q,
                impl=lambda a, b: quantity_value(_nano(a) - _amount(b)),
            ),
            over(
                "quantity_sub_int",
                q,
                q,
                t.INT,
                impl=lambda a, b: quantity_value(_nano(a) - _amount(b)),
            ),
        ),
        both("compareTo", t.INT, _compare),
        both("isLessThan", t.BOOL, lambda a, b: _compare(a, b) < 0),
        both("isGreaterThan", t.BOOL, lambda a, b: _compare(a, b) > 0),
        function(
            "semver",
            new("string_semver", v, semver_value),
            normal(
                "string_bool_semver",
                v,
                lambda s, n: semver_value(normalized(s) if n else s),
            ),
        ),
        function(
            "isSemver",
            new("string_is_semver", t.BOOL, _is_semver),
            normal(
                "string_bool_is_semver",
                t.BOOL,
                lambda s, n: _is_semver(normalized(s) if n else s),
            ),
        ),
        *(
            function(
                name,
                over(f"semver_{name}", t.INT, v, impl=lambda a, i=i: _part(a, i)),
            )
            for i, name in enumerate(("major", "minor", "patch"))
        ),
    ]
