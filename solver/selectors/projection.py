"""What a selector can see of a device, as canonical text.

Devices with equal projections get equal verdicts, so an expression is evaluated once a
projection. A device that no selector can be evaluated on (an attribute of no or of an
unsupported value) projects to its fault. Nothing here evaluates anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NewType

from contracts.device import Device, DeviceAttribute, DeviceCapacity
from solver.cache import Cache, Last, cached
from solver.selectors.footprint import WHOLE, Footprint
from solver.selectors.semver import is_semver

Projection = NewType("Projection", str)
"""What an expression can see of a device."""
_MOST_PROJECTIONS = 65_536
_MOST_POOLS = 4096
_LEAST, _BEYOND = -(2**63), 2**63
"""What the integers of CEL are from, and below."""
_FAULT: Last[Device, str] = Last()
"""Projections of the last device: one is often asked about in a row."""


def project(footprint: Footprint, driver: str, device: Device) -> Projection:
    """Project a device to what an expression can see of it: about a microsecond."""
    fault = _FAULT.get(device)
    if fault is None:
        fault = _FAULT.keep(device, find_fault(device))
    if fault:
        return _project_faulty(fault)
    return _make_projector(footprint, driver).of((device,))[0]


def project_all(
    footprint: Footprint,
    driver: str,
    devices: Sequence[Device],
    faults: Mapping[int, str],
) -> tuple[Projection, ...]:
    """Project the devices of a pool; `faults`: of those that have one, by index."""
    projections = _make_projector(footprint, driver).of(devices)
    if not faults:
        return projections
    return tuple(
        _project_faulty(faults[index]) if index in faults else projection
        for index, projection in enumerate(projections)
    )


def _project_faulty(fault: str) -> Projection:
    return Projection("!" + fault)


class _Projector:
    """Projects the sound devices of a driver; remembers what it wrote."""

    def __init__(self, footprint: Footprint, driver: str) -> None:
        self._footprint = footprint
        self._driver = driver
        accessed = (*footprint.attributes, *footprint.capacity)
        self._is_whole = footprint.everything or any(
            identifier == WHOLE for _, identifier in accessed
        )
        self._read = _make_reader(
            _list_names(driver, footprint.attributes),
            _list_names(driver, footprint.capacity),
            multiple=footprint.multiple,
        )
        self._by_raw: Cache[object, Projection] = Cache(_MOST_PROJECTIONS)
        self._by_raws: Cache[Sequence[object], tuple[Projection, ...]] = Cache(
            _MOST_POOLS
        )
        """Most pools look like others: found with one look-up for all devices."""

    def of(self, devices: Sequence[Device]) -> tuple[Projection, ...]:
        """Project some devices."""
        if self._is_whole:
            return tuple(map(self._write_device, devices))
        raws = self._read(devices)
        projections = self._by_raws.get(raws)
        if projections is None:
            pairs = zip(raws, devices, strict=True)
            written = tuple(self._project_raw(raw, device) for raw, device in pairs)
            projections = self._by_raws.keep(raws, written)
        return projections

    def _project_raw(self, raw: object, device: Device) -> Projection:
        projection = self._by_raw.get(raw)
        if projection is None:
            projection = self._by_raw.keep(raw, self._write_device(device))
        return projection

    def _write_device(self, device: Device) -> Projection:
        return _write_projection(self._footprint, self._driver, device)


_make_projector = cached(bound=16384)(_Projector)


def _make_reader(
    attributes: tuple[str, ...], capacity: tuple[str, ...], *, multiple: bool
) -> Callable[[Sequence[Device]], tuple[object, ...]]:
    """Make a reader of what is seen of devices: equal values, equal projections."""
    if multiple or (attributes and capacity):
        return lambda devices: tuple(
            (
                tuple(map(device.attributes.get, attributes)),
                tuple(map(device.capacity.get, capacity)),
                device.allow_multiple_allocations,
            )
            for device in devices
        )
    if capacity:
        return lambda devices: tuple(
            [tuple(map(device.capacity.get, capacity)) for device in devices]
        )
    if len(attributes) == 2:  # one that is read, in its two spellings
        full, bare = attributes
        return lambda devices: tuple(
            [(d.attributes.get(full), d.attributes.get(bare)) for d in devices]
        )
    if attributes:
        return lambda devices: tuple(
            [tuple(map(device.attributes.get, attributes)) for device in devices]
        )
    return lambda devices: (None,) * len(devices)


def _list_names(driver: str, accesses: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """List the names that devices may use for what is seen."""
    full = [f"{domain}/{identifier}" for domain, identifier in accesses]
    return (*full, *(identifier for domain, identifier in accesses if domain == driver))


def _write_projection(footprint: Footprint, driver: str, device: Device) -> Projection:
    attributes = _qualify_names(driver, device.attributes)
    capacity = _qualify_names(driver, device.capacity)
    parts = [
        _write_sized(driver),
        *_write_entries(
            attributes,
            None if footprint.everything else footprint.attributes,
            _write_attribute,
        ),
        *_write_entries(
            capacity,
            None if footprint.everything else footprint.capacity,
            _write_amount,
        ),
    ]
    if footprint.multiple or footprint.everything:
        parts.append(str(bool(device.allow_multiple_allocations)))
    return Projection(" ".join(parts))


def _qualify_names(driver: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Add the domain to bare names; the full name wins over a bare one."""
    bare = {f"{driver}/{name}": v for name, v in entries.items() if "/" not in name}
    return bare | {name: v for name, v in entries.items() if "/" in name}


def _write_entries(
    entries: Mapping[str, Any],
    accesses: tuple[tuple[str, str], ...] | None,
    write: Callable[[Any], str],
) -> Iterable[str]:
    """Write what is seen of a map; None: all of it."""
    if accesses is None:
        yield _write_all(entries, "", write)
        return
    for domain, identifier in accesses:
        if identifier == WHOLE:
            yield _write_all(entries, f"{domain}/", write)
        else:
            value = entries.get(f"{domain}/{identifier}")
            yield "-" if value is None else write(value)


def _write_all(
    entries: Mapping[str, Any], prefix: str, write: Callable[[Any], str]
) -> str:
    names = sorted(name for name in entries if name.startswith(prefix))
    written = (f"{_write_sized(name)}={write(entries[name])}" for name in names)
    return f"{len(names)}({','.join(written)})"


def _write_attribute(attribute: DeviceAttribute) -> str:
    """Write an attribute's value with its type; lists first, as CEL sees them."""
    for kind, values in (
        ("I", attribute.int_values),
        ("B", attribute.bool_values),
        ("S", attribute.string_values),
        ("V", attribute.version_values),
    ):
        if values is not None:
            return (
                kind
                + "["
                + ",".join(_write_sized(str(value)) for value in values)
                + "]"
            )
    if attribute.int_value is not None:
        return f"i{attribute.int_value}"
    if attribute.bool_value is not None:
        return f"b{attribute.bool_value}"
    if attribute.string_value is not None:
        return "s" + _write_sized(attribute.string_value)
    return "v" + _write_sized(attribute.version_value or "")


def _write_amount(capacity: DeviceCapacity) -> str:
    return str(capacity.value.nano)


def _write_sized(text: str) -> str:
    """Write a text so that nothing after it can be mistaken for a part of it."""
    return f"{len(text)}:{text}"


def find_faults(devices: Sequence[Device]) -> dict[int, str]:
    """Find the devices of a pool that any selector fails on, by index, and why."""
    # Nearly all are a text or a number and nothing else, which one look at all of them
    # shows: a call for each would cost more than that.
    if not [
        attribute
        for device in devices
        for attribute in device.attributes.values()
        if attribute.int_values is not None
        or attribute.version_values is not None
        or (
            attribute.string_value is None
            if (number := attribute.int_value) is None
            else not _LEAST <= number < _BEYOND
        )
    ]:
        return {}
    fault_by_index = {}
    for index, device in enumerate(devices):
        if not all(map(_is_valid, device.attributes.values())):
            fault_by_index[index] = find_fault(device)
    return fault_by_index


def find_fault(device: Device) -> str:
    """Return why any selector fails on a device; empty: none does for that.

    Source: k8s.io/dynamic-resource-allocation/cel, getAttributeValue.
    """
    faulty = [
        name
        for name, attribute in device.attributes.items()
        if not _is_valid(attribute)
    ]
    return f"attribute {min(faulty)}: unsupported attribute value" if faulty else ""


def _is_valid(attribute: DeviceAttribute) -> bool:
    """True if an attribute has a value that CEL can hold, in upstream's order."""
    if attribute.int_values is not None:
        return all(_LEAST <= value < _BEYOND for value in attribute.int_values)
    if attribute.bool_values is not None or attribute.string_values is not None:
        return True
    if attribute.version_values is not None:
        return all(map(is_semver, attribute.version_values))
    if attribute.int_value is not None:
        return _LEAST <= attribute.int_value < _BEYOND
    if attribute.bool_value is not None or attribute.string_value is not None:
        return True
    return attribute.version_value is not None and is_semver(attribute.version_value)
