"""Devices that a request might get but this version cannot decide about.

Shared counters, shareable devices, pools that are not local to a node and the like.
A request kind that selects such a device is refused by the field's name: leaving the
device out could turn into a wrong "no".
"""

from __future__ import annotations

from collections.abc import Iterator

from contracts.device import Device
from solver.problem.candidates import selected
from solver.problem.demand import Query
from solver.problem.nodes import attribute_of
from solver.problem.selectors import SelectorTable
from solver.snapshot.parts import Page, Part, PoolPart
from solver.snapshot.pools import device_not_modelled


def fields_not_modelled(
    pages: tuple[Page, ...], query: Query, table: SelectorTable
) -> dict[int, str]:
    """Find the field, by request kind, that keeps this version from deciding."""
    found: dict[int, str] = {}
    for page in pages:
        for part, devices in _suspects(page, query.attributes):
            for k, kind in enumerate(query.requests):
                bits = selected(part, kind.selectors, table).bits
                for index, field in devices:
                    if bits >> index & 1:
                        found.setdefault(k, field)
    return found


Suspects = tuple[tuple[Part, tuple[tuple[int, str], ...]], ...]


def _suspects(page: Page, attributes: tuple[str, ...]) -> Suspects:
    key = ("suspects", attributes)
    known: Suspects | None = page.memo.get(key)
    if known is None:
        known = page.memo[key] = tuple(
            (part, devices)
            for part in page.parts.values()
            if (devices := tuple(_devices(part, attributes)))
        )
    return known


def _devices(part: Part, attributes: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    pool = part.value
    if not isinstance(pool, PoolPart) or pool.incomplete or pool.invalid:
        return
    for index, device in enumerate(pool.devices):
        field = pool.not_modelled or device_not_modelled(device)
        field = field or _list_compared(device, pool.driver, attributes)
        if field:
            yield index, field


def _list_compared(device: Device, driver: str, attributes: tuple[str, ...]) -> str:
    for name in attributes:
        found = attribute_of(device, driver, name)
        if found is not None and (
            found.int_values is not None
            or found.bool_values is not None
            or found.string_values is not None
            or found.version_values is not None
        ):
            return f"attributes[{name}] with a list of values"
    return ""
