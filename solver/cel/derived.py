"""What a CEL expression makes of a device: a derived attribute, scalar or list.

Constraints compare it like a published one (KEP-6080). Null never reaches Python: the
engine's library cannot hand it over, so it is turned into what no attribute can be.
"""

from __future__ import annotations

from typing import Any

from contracts.device import DeviceAttribute
from solver.cel.messages import SEMVER
from solver.cel.refusals import compile_error, runtime_error
from solver.selectors.table import Verdict

_INT64 = 2**63
_SCALARS = frozenset({"BOOL", "INT", "STRING", "DYN", "kubernetes.Semver"})
_FIELDS: tuple[tuple[type, str], ...] = (
    (bool, "bool_value"),
    (int, "int_value"),
    (str, "string_value"),
    (SEMVER, "version_value"),
)


def replace_null(code: str) -> str:
    """Write an expression whose value is never null."""
    return f"cel.bind(value__, (\n{code}\n), value__ == null ? dyn(0.5) : value__)"


def refuse_type(kind: str) -> Verdict | None:
    """Return why a type is none of a derived attribute; None: it may be one."""
    element = kind.removeprefix("LIST<").removesuffix(">") if "LIST<" in kind else kind
    if element in _SCALARS:
        return None
    return compile_error(
        "must evaluate to a primitive scalar (string, integer, boolean, semver) or a "
        f"list of these scalars, not {kind}"
    )


def verdict_of_value(value: Any) -> Verdict:
    """Turn a value of the engine into an attribute."""
    if isinstance(value, list):
        return _verdict_of_list([_unwrap(element) for element in value])
    field = _field_for(value)
    if field is None:
        return runtime_error(f"unsupported type {type(value).__name__}")
    return Verdict(attribute=DeviceAttribute(**{field: _plain(value)}))


def _verdict_of_list(values: list[Any]) -> Verdict:
    if not values:
        return Verdict(attribute=DeviceAttribute(string_values=()))
    fields = {_field_for(value) for value in values}
    field = _field_for(values[0])
    if field is None or len(fields) > 1:
        return runtime_error("list elements must be scalars of one type")
    fields_of: dict[str, Any] = {f"{field}s": tuple(_plain(v) for v in values)}
    return Verdict(attribute=DeviceAttribute(**fields_of))


def _field_for(value: Any) -> str | None:
    for kind, field in _FIELDS:
        if isinstance(value, kind):
            return field
    return None


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, SEMVER) else value


def _unwrap(element: Any) -> Any:
    """Read an element of a list out of the engine's wrapper."""
    inner = getattr(element, "value", None)
    return inner() if callable(inner) else element
