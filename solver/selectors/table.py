"""Devices as selectors see them, and the recorded table of what they said.

A look is what one expression can tell of a device, as canonical text: devices with
equal looks get equal verdicts, so an expression is evaluated once a look. The table of
verdicts is part of the Problem; nothing here evaluates anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NewType

from msgspec import Struct

from contracts.device import Device, DeviceAttribute, DeviceCapacity
from solver.cache import Cache, Last, Memory, cached
from solver.selectors.footprint import NOTHING, WHOLE, Reads, reads
from solver.selectors.semver import is_semver

Look = NewType("Look", str)
"""What an expression can see of a device."""
_KNOWN_LOOKS = 65_536
_INT64 = 2**63
_FAULT: Last[Device, str] = Last()
"""Of the device that was projected last: one is often asked about in a row."""


class Verdict(Struct, frozen=True, omit_defaults=True):
    """What a selector says of a look: true, false, or why it cannot say."""

    value: bool | None = None
    error: str = ""
    """Not empty: evaluating it fails, with this text."""
    attribute: DeviceAttribute | None = None
    """What a derived attribute is; None: the expression is a selector."""


class SelectorRows(Struct, frozen=True, kw_only=True, rename="camel"):
    """The recorded verdicts of one expression."""

    expression: str
    rows: tuple[tuple[str, Verdict], ...]
    """(look, verdict), sorted."""


Row = tuple[str, Look, Verdict]
"""(expression, look, verdict)."""


class SelectorTable:
    """Verdicts by expression and look; frozen.

    `memory`: what is remembered of it.
    """

    def __init__(
        self, verdicts: Mapping[tuple[str, Look], Verdict] | None = None
    ) -> None:
        self._verdicts = dict(verdicts or {})
        self.memory = Memory()

    @classmethod
    def of(cls, rows: Iterable[Row]) -> SelectorTable:
        """Make a table of these rows."""
        return cls({(expression, seen): verdict for expression, seen, verdict in rows})

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
    """Project a device to what an expression can see of it: about a microsecond."""
    fault = _FAULT.get(device)
    if fault is None:
        fault = _FAULT.keep(device, fault_of(device))
    return _faulty(fault) if fault else _projection(seen, driver)(device)


def looks(
    seen: Reads, driver: str, devices: Sequence[Device], faults: Mapping[int, str]
) -> tuple[Look, ...]:
    """Project the devices of a pool; `faults`: of those that have one, by index."""
    project = _projection(seen, driver)
    if not faults:
        if seen == NOTHING:
            return (project(devices[0]),) * len(devices) if devices else ()
        return tuple(map(project, devices))
    return tuple(
        _faulty(faults[index]) if index in faults else project(device)
        for index, device in enumerate(devices)
    )


def _faulty(fault: str) -> Look:
    return Look("!" + fault)


@cached(bound=16384)
def _projection(seen: Reads, driver: str) -> Callable[[Device], Look]:
    """Make the projection of a driver's sound devices; it remembers what it wrote."""
    attributes = _names(driver, seen.attributes)
    capacity = _names(driver, seen.capacity)
    whole = seen.everything or any(
        identifier == WHOLE for _, identifier in seen.attributes + seen.capacity
    )
    read = _reader(attributes, capacity, multiple=seen.multiple)
    looks_by_raw: Cache[object, Look] = Cache(_KNOWN_LOOKS)

    def project(device: Device) -> Look:
        if whole:
            return _written(seen, driver, device)
        raw = read(device)
        known = looks_by_raw.get(raw)
        if known is None:
            known = looks_by_raw.keep(raw, _written(seen, driver, device))
        return known

    return project


def _reader(
    attributes: tuple[str, ...], capacity: tuple[str, ...], *, multiple: bool
) -> Callable[[Device], object]:
    """Read what is seen as it stands, as fast as can be: equal means equal looks."""
    if multiple or (attributes and capacity):
        return lambda device: (
            tuple(map(device.attributes.get, attributes)),
            tuple(map(device.capacity.get, capacity)),
            device.allow_multiple_allocations,
        )
    if capacity:
        return lambda device: tuple(map(device.capacity.get, capacity))
    if attributes:
        return lambda device: tuple(map(device.attributes.get, attributes))
    return lambda _: None


def _names(driver: str, seen: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """List the names that devices may use for what is seen."""
    found = [f"{domain}/{identifier}" for domain, identifier in seen]
    return (*found, *(identifier for domain, identifier in seen if domain == driver))


def _written(seen: Reads, driver: str, device: Device) -> Look:
    attributes = _full(driver, device.attributes)
    capacity = _full(driver, device.capacity)
    parts = [
        _sized(driver),
        *_parts(attributes, None if seen.everything else seen.attributes, _attribute),
        *_parts(capacity, None if seen.everything else seen.capacity, _amount),
    ]
    if seen.multiple or seen.everything:
        parts.append(str(bool(device.allow_multiple_allocations)))
    return Look(" ".join(parts))


def _full(driver: str, items: Mapping[str, Any]) -> dict[str, Any]:
    """Give bare names their domain; the full name wins over a bare one."""
    bare = {f"{driver}/{name}": v for name, v in items.items() if "/" not in name}
    return bare | {name: v for name, v in items.items() if "/" in name}


def _parts(
    items: Mapping[str, Any],
    seen: tuple[tuple[str, str], ...] | None,
    write: Callable[[Any], str],
) -> Iterable[str]:
    """Write what is seen of a map; None: all of it."""
    if seen is None:
        yield _several(items, "", write)
        return
    for domain, identifier in seen:
        if identifier == WHOLE:
            yield _several(items, f"{domain}/", write)
        else:
            found = items.get(f"{domain}/{identifier}")
            yield "-" if found is None else write(found)


def _several(items: Mapping[str, Any], prefix: str, write: Callable[[Any], str]) -> str:
    names = sorted(name for name in items if name.startswith(prefix))
    written = (f"{_sized(name)}={write(items[name])}" for name in names)
    return f"{len(names)}({','.join(written)})"


def _attribute(found: DeviceAttribute) -> str:
    """Write an attribute's value with its type; lists first, as CEL sees them."""
    for kind, values in (
        ("I", found.int_values),
        ("B", found.bool_values),
        ("S", found.string_values),
        ("V", found.version_values),
    ):
        if values is not None:
            return kind + "[" + ",".join(_sized(str(value)) for value in values) + "]"
    if found.int_value is not None:
        return f"i{found.int_value}"
    if found.bool_value is not None:
        return f"b{found.bool_value}"
    if found.string_value is not None:
        return "s" + _sized(found.string_value)
    return "v" + _sized(found.version_value or "")


def _amount(found: DeviceCapacity) -> str:
    return str(found.value.nano)


def _sized(text: str) -> str:
    """Write a text so that nothing after it can be mistaken for a part of it."""
    return f"{len(text)}:{text}"


def fault_of(device: Device) -> str:
    """Say why any selector fails on a device; empty: none does for that.

    Source: k8s.io/dynamic-resource-allocation/cel, getAttributeValue.
    """
    faulty = [
        name
        for name, found in device.attributes.items()
        # Most are a text and nothing else: seen here, a call costs more than that.
        if (
            found.string_value is None
            or found.int_value is not None
            or found.int_values is not None
            or found.version_values is not None
        )
        and not _is_valid(found)
    ]
    return f"attribute {min(faulty)}: unsupported attribute value" if faulty else ""


def _is_valid(found: DeviceAttribute) -> bool:
    """Say whether an attribute has a value that CEL can hold, in upstream's order."""
    if found.int_values is not None:
        return all(-_INT64 <= value < _INT64 for value in found.int_values)
    if found.bool_values is not None or found.string_values is not None:
        return True
    if found.version_values is not None:
        return all(map(is_semver, found.version_values))
    if found.int_value is not None:
        return -_INT64 <= found.int_value < _INT64
    if found.bool_value is not None or found.string_value is not None:
        return True
    return found.version_value is not None and is_semver(found.version_value)
