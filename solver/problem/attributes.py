"""The values of a device that constraints compare.

A value is an element with its kind, so that 1 and "1" and true differ; a device has a
set of them: one for a scalar, several for a list (KEP-5491). Derived attributes of a
request go before published ones; they are read from the recorded table (KEP-6080).
"""

from __future__ import annotations

from contracts.device import Device, DeviceAttribute
from contracts.features import Features
from solver.problem.problem import SubrequestPart
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import project
from solver.selectors.table import SelectorTable, Verdict

Element = tuple[str, object]
"""(kind, value)."""
DERIVED = "="
"""What stands before the expression of a derived attribute in the selector table."""


def published(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """Look an attribute up by its full name; a bare one is of the driver's domain."""
    found = device.attributes.get(name)
    if found is None:
        domain, _, identifier = name.partition("/")
        if domain == driver and "/" in name:
            found = device.attributes.get(identifier)
    return found


def derived(
    asked: SubrequestPart, name: str, device: Device, driver: str, table: SelectorTable
) -> Verdict | None:
    """Read what a request derives under this name; None: it derives nothing so."""
    expressions = dict(asked.derived_attributes)
    if name not in expressions:
        return None
    expression = DERIVED + expressions[name]  # type: ignore[index]  # just found
    return table.get(
        expression, project(footprint_of(expression), driver, device)
    ) or Verdict(error="CEL runtime error: not evaluated")


def elements(found: DeviceAttribute | None, features: Features) -> frozenset[Element]:
    """List what a device's attribute may be equal in; empty: nothing.

    While lists are switched off, an attribute with a list has no value.
    """
    if found is None:
        return frozenset()
    lists: tuple[tuple[str, tuple[object, ...] | None], ...] = (
        ("int", found.int_values),
        ("bool", found.bool_values),
        ("string", found.string_values),
        ("version", found.version_values),
    )
    for kind, values in lists:
        if values:
            named = ((kind, value) for value in values)
            return frozenset(named) if features.list_type_attributes else frozenset()
    for kind, value in scalars(found):
        if value is not None:
            return frozenset({(kind, value)})
    return frozenset()


def scalars(found: DeviceAttribute) -> tuple[Element, ...]:
    """List the scalar fields of an attribute in upstream's order."""
    return (
        ("string", found.string_value),
        ("int", found.int_value),
        ("bool", found.bool_value),
        ("version", found.version_value),
    )
