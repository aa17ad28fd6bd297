"""The values of a device that constraints compare.

A value is an element with its kind, so that 1 and "1" and true differ; a device has a
set of them: one for a scalar, several for a list (KEP-5491). Derived attributes of a
request go before published ones; they are read from the recorded table (KEP-6080).
"""

from __future__ import annotations

from contracts.device import Device, DeviceAttribute
from contracts.features import Features
from solver.problem.gangs import SubrequestPart
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import project
from solver.selectors.table import SelectorTable, Verdict

Element = tuple[str, object]
"""(kind, value)."""
DERIVED = "="
"""What stands before the expression of a derived attribute in the selector table."""


def find_derived(
    request: SubrequestPart,
    name: str,
    device: Device,
    driver: str,
    table: SelectorTable,
) -> Verdict | None:
    """Read what a request derives under this name; None: nothing."""
    expressions = dict(request.derived_attributes)
    if name not in expressions:
        return None
    expression = DERIVED + expressions[name]  # type: ignore[index]  # just found
    return table.get(
        expression, project(footprint_of(expression), driver, device)
    ) or Verdict(error="CEL runtime error: not evaluated")


def elements_of(
    attribute: DeviceAttribute | None, features: Features
) -> frozenset[Element]:
    """List the elements by which a device's attribute is compared; empty: it has none.

    While lists are switched off, an attribute with a list has no value.
    """
    if attribute is None:
        return frozenset()
    lists: tuple[tuple[str, tuple[object, ...] | None], ...] = (
        ("int", attribute.int_values),
        ("bool", attribute.bool_values),
        ("string", attribute.string_values),
        ("version", attribute.version_values),
    )
    for kind, values in lists:
        if values:
            if not features.list_type_attributes:
                return frozenset()
            return frozenset(
                (kind, _compared(value, kind, features)) for value in values
            )
    for kind, value in list_scalars(attribute, features):
        if value is not None:
            return frozenset({(kind, value)})
    return frozenset()


def list_scalars(attribute: DeviceAttribute, features: Features) -> tuple[Element, ...]:
    """List the scalar fields of an attribute in upstream's order, as compared."""
    return (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", _compared(attribute.version_value, "version", features)),
    )


def _compared(value: object, kind: str, features: Features) -> object:
    """Return what of a value is compared: of versions all but the build metadata.

    Source: semver.org 2.0.0, 10: it has no precedence.
    """
    if isinstance(value, str) and kind == "version" and features.rules_of_138:
        return value.partition("+")[0]
    return value
