"""The standard functions that Kubernetes widens: comparisons and `string`.

The engine compares an int with a double at run time but refuses to compile it, and
lets nobody add to a standard function: so it is left out of the library and declared
here anew, with more overloads. The engine's own code still runs those it has.

Source: cel-go, CrossTypeNumericComparisons; Kubernetes' CEL libraries `ip`, `cidr`.
"""

from __future__ import annotations

from typing import Any

from cel_expr_python import cel

from solver.cel.messages import (
    BOOL,
    CIDR,
    CIDR_TYPE,
    DOUBLE,
    INT,
    IP,
    IP_TYPE,
    STRING,
    InputError,
    call,
    function,
)

_COMPARISONS = {
    "_<_": "less",
    "_<=_": "less_equals",
    "_>_": "greater",
    "_>=_": "greater_equals",
}
REDECLARED = (*_COMPARISONS, "string")
_NUMBERS = {
    "int64": INT,
    "uint64": cel.Type.UINT,
    "double": DOUBLE,
}
_ORDERED = {
    **_NUMBERS,
    "bool": BOOL,
    "string": STRING,
    "bytes": cel.Type.BYTES,
    "timestamp": cel.Type.TIMESTAMP,
    "duration": cel.Type.DURATION,
}


def declare_functions() -> list[Any]:
    """Declare the comparisons and `string`."""
    return [*(_comparison(*names) for names in _COMPARISONS.items()), _string()]


def _comparison(operator: str, name: str) -> Any:
    same = [call(f"{name}_{kind}", BOOL, of, of) for kind, of in _ORDERED.items()]
    mixed = [
        call(f"{name}_{left}_{right}", BOOL, _NUMBERS[left], _NUMBERS[right])
        for left in _NUMBERS
        for right in _NUMBERS
        if left != right
    ]
    return function(operator, *same, *mixed)


def _string() -> Any:
    return function(
        "string",
        *(call(f"{kind}_to_string", STRING, of) for kind, of in _ORDERED.items()),
        call("ip_to_string", STRING, IP_TYPE, impl=_text),
        call("cidr_to_string", STRING, CIDR_TYPE),
    )


def _text(value: Any) -> str:
    if not isinstance(value, (IP, CIDR)):
        raise InputError("no such overload")
    return str(value.value)
