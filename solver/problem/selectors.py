"""Devices as selectors see them, and the recorded table of what they said.

A look is what one expression can tell of a device, as canonical text: devices with
equal looks get equal verdicts, so an expression is evaluated once a look. The table of
verdicts is part of the Problem; nothing here evaluates anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NewType

from msgspec import Struct

from contracts.device import Device, DeviceAttribute
from solver.problem.reads import Reads, reads

Look = NewType("Look", str)
"""What an expression can see of a device."""
BROKEN = Look("!")
"""The look of a device on which any evaluation fails: see `is_broken`."""
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
    r"(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


class Verdict(Struct, frozen=True, omit_defaults=True):
    """What a selector says of a look: true, false, or why it cannot say."""

    value: bool | None = None
    error: str = ""
    """Not empty: evaluating it fails, with this text."""


class SelectorRows(Struct, frozen=True, kw_only=True, rename="camel"):
    """The recorded verdicts of one expression."""

    expression: str
    rows: tuple[tuple[str, Verdict], ...]
    """(look, verdict), sorted."""


class SelectorTable:
    """Verdicts by expression and look; frozen."""

    def __init__(
        self, verdicts: Mapping[tuple[str, Look], Verdict] | None = None
    ) -> None:
        self._verdicts = dict(verdicts or {})

    @classmethod
    def of_rows(cls, recorded: Iterable[SelectorRows]) -> SelectorTable:
        """Read a recorded table back."""
        return cls(
            {
                (item.expression, Look(seen)): verdict
                for item in recorded
                for seen, verdict in item.rows
            }
        )

    def __len__(self) -> int:
        return len(self._verdicts)

    def get(self, expression: str, seen: Look) -> Verdict | None:
        """Look a verdict up; None: nobody evaluated it."""
        return self._verdicts.get((expression, seen))

    def with_verdicts(
        self, asked: Sequence[tuple[str, str, Device]], verdicts: Sequence[Verdict]
    ) -> SelectorTable:
        """Add what an evaluation of (expression, driver, device) gave."""
        found = dict(self._verdicts)
        for (expression, driver, device), verdict in zip(asked, verdicts, strict=True):
            found[expression, look(reads(expression), driver, device)] = verdict
        return SelectorTable(found)

    def restricted(self, rows: Iterable[tuple[str, Look]]) -> SelectorTable:
        """Keep these rows only."""
        return SelectorTable({row: self._verdicts[row] for row in rows})

    def rows(self) -> tuple[SelectorRows, ...]:
        """Write the table in its canonical order."""
        by_expression: dict[str, list[tuple[str, Verdict]]] = {}
        for (expression, seen), verdict in self._verdicts.items():
            by_expression.setdefault(expression, []).append((seen, verdict))
        return tuple(
            SelectorRows(
                expression=expression,
                rows=tuple(sorted(by_expression[expression], key=lambda row: row[0])),
            )
            for expression in sorted(by_expression)
        )


def look(seen: Reads, driver: str, device: Device) -> Look:
    """Project a device to what an expression can see of it."""
    if is_broken(device):
        return BROKEN
    if seen.everything:
        return Look("\n".join([driver, *_everything(device)]))
    parts = [driver]
    for domain, identifier in seen.attributes:
        if not identifier:
            parts.extend(_domain(driver, device, domain))
            continue
        found = device.attributes.get(f"{domain}/{identifier}")
        if found is None and domain == driver:
            found = device.attributes.get(identifier)
        parts.append("-" if found is None else _text(found))
    for domain, identifier in seen.capacity:
        if not identifier:
            parts.extend(_capacities(driver, device, domain))
            continue
        amount = device.capacity.get(f"{domain}/{identifier}")
        if amount is None and domain == driver:
            amount = device.capacity.get(identifier)
        parts.append("-" if amount is None else str(amount.value.nano))
    if seen.multiple:
        parts.append(str(bool(device.allow_multiple_allocations)))
    return Look("\n".join(parts))


def is_broken(device: Device) -> bool:
    """Say whether any selector fails on a device: an attribute without a valid value.

    Source: kubernetes/dynamic-resource-allocation, cel.Device conversion.
    """
    for found in device.attributes.values():
        if found.string_value is not None or found.int_value is not None:
            continue
        if found.version_value is not None:
            if not is_semver(found.version_value):
                return True
        elif found.version_values is not None:
            if not all(is_semver(value) for value in found.version_values):
                return True
        elif (
            found.bool_value is None
            and found.string_values is None
            and found.int_values is None
            and found.bool_values is None
        ):
            return True
    return False


@lru_cache(maxsize=65536)
def is_semver(text: str) -> bool:
    """Say whether a text is a Semantic Version 2.0.0, strictly."""
    return _SEMVER.fullmatch(text) is not None


def _text(found: DeviceAttribute) -> str:
    """Write an attribute's value with its type; lists first, as CEL sees them."""
    if found.string_value is not None and found.string_values is None:
        return _of("s", found.string_value)
    for kind, values in (
        ("I", found.int_values),
        ("B", found.bool_values),
        ("S", found.string_values),
        ("V", found.version_values),
    ):
        if values is not None:
            return kind + "[" + ",".join(_of("", str(value)) for value in values) + "]"
    if found.int_value is not None:
        return f"i{found.int_value}"
    if found.bool_value is not None:
        return f"b{found.bool_value}"
    return _of("v", found.version_value or "")


def _of(kind: str, text: str) -> str:
    """Write a text so that nothing after it can be mistaken for a part of it."""
    return f"{kind}{len(text)}:{text}"


def _domain(driver: str, device: Device, domain: str) -> list[str]:
    found = {
        key: f"{key}={_text(value)}"
        for name, value in device.attributes.items()
        if (key := _full(driver, name)).startswith(domain + "/")
    }
    return [f"{domain}({len(found)})", *(found[key] for key in sorted(found))]


def _capacities(driver: str, device: Device, domain: str) -> list[str]:
    found = {
        key: f"{key}={value.value.nano}"
        for name, value in device.capacity.items()
        if (key := _full(driver, name)).startswith(domain + "/")
    }
    return [f"{domain}({len(found)})", *(found[key] for key in sorted(found))]


def _full(driver: str, name: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _everything(device: Device) -> list[str]:
    attributes = {n: f"{n}={_text(v)}" for n, v in device.attributes.items()}
    capacity = {n: f"{n}={v.value.nano}" for n, v in device.capacity.items()}
    return [
        *(attributes[name] for name in sorted(attributes)),
        "/",
        *(capacity[name] for name in sorted(capacity)),
        str(bool(device.allow_multiple_allocations)),
    ]
