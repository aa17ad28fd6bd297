"""Plain values for tests: names, quantities and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contracts.device import DeviceAttribute
from contracts.quantity import Quantity

DRIVER = "gpu.example.com"
DEVICE_CLASS = "gpu.example.com"
NODE = "node-1"
NAMESPACE = "team-a"
UID = "7c1b0f8e-4a57-4f2f-9d6e-0d2f6f3f0a01"


class Version(str):
    """A semantic version as the value of an attribute."""

    __slots__ = ()


Value = int | bool | str | Version | Sequence[int | bool | str | Version]
Amount = int | str | Quantity


def quantity(amount: Amount) -> Quantity:
    """Make a quantity of a text or an integer."""
    if isinstance(amount, Quantity):
        return amount
    return Quantity.parse(amount) if isinstance(amount, str) else Quantity.of(amount)


def quantities(amounts: Mapping[str, Amount]) -> dict[str, Quantity]:
    """Make the quantities of a map."""
    return {name: quantity(amount) for name, amount in amounts.items()}


def attribute(value: Value) -> DeviceAttribute:
    """Make an attribute of a plain value; a sequence becomes a list of one kind."""
    match value:
        case bool():
            return DeviceAttribute(bool_value=value)
        case int():
            return DeviceAttribute(int_value=value)
        case Version():
            return DeviceAttribute(version_value=str(value))
        case str():
            return DeviceAttribute(string_value=value)
        case _:
            return _list_attribute(value)


def _list_attribute(values: Sequence[int | bool | str | Version]) -> DeviceAttribute:
    fields = {
        bool: "bool_values",
        int: "int_values",
        Version: "version_values",
        str: "string_values",
    }
    plain = [str(item) if isinstance(item, Version) else item for item in values]
    lists: dict[str, Any] = {fields[type(values[0])]: tuple(plain)}
    return DeviceAttribute(**lists)
