"""The fleet as a picture: what a plan takes of it, and what is left. Pure.

An SVG of its own, as the console draws it: a tile for each node, a square for each
device, coloured by the gang that holds it. Notebooks show it (`_repr_svg_`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from msgspec import Struct

from contracts.allocation import AllocationResult
from contracts.claim import ResourceClaim
from contracts.device import ResourceSlice
from contracts.kubernetes.decode import decode_object, flatten
from moorings.plan.plan import Plan

_CELL, _GAP, _PAD, _TITLE = 14, 2, 6, 16
_COLUMNS, _WIDTH = 8, 980
_FREE, _HELD = "#8fd3b0", "#b9c2cc"
_ANYWHERE = "devices of no single node"
_Device = tuple[str, str, str]
"""Driver, pool and name."""
Holders = Mapping[_Device, str]
"""The gang or claim that holds a device."""


class FleetDrawing(Struct, frozen=True):
    """An SVG document; the last value of a notebook's cell is shown as a picture."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


def draw(
    objects: Iterable[Mapping[str, Any]], plan: Plan | None = None
) -> FleetDrawing:
    """Draw the devices of ResourceSlices, and who holds them before and in a plan.

    Claims that are allocated in `objects` hold their devices in grey. Objects of other
    kinds are passed by.
    """
    slices: list[ResourceSlice] = []
    holders: dict[_Device, str] = {}
    for raw in (raw for document in objects for raw in flatten(document)):
        if raw.get("kind") not in ("ResourceSlice", "ResourceClaim"):
            continue
        match decode_object(raw).value:
            case ResourceSlice() as each:
                slices.append(each)
            case ResourceClaim(metadata=meta, allocation=AllocationResult() as held):
                name = f"{meta.namespace}/{meta.name}"
                for result in held.devices.results:
                    holders[result.driver, result.pool, result.device] = name
            case _:
                pass
    taken = dict(_list_taken(plan)) if plan is not None else {}
    return FleetDrawing(_write(_list_nodes(slices), holders, taken))


def _list_taken(plan: Plan) -> Iterator[tuple[_Device, str]]:
    for claim in plan.claims:
        if claim.allocation is not None:
            for each in claim.allocation.devices.results:
                gang = f"{claim.namespace}/{claim.gang}"
                yield (each.driver, each.pool, each.device), gang


def _list_nodes(
    slices: Iterable[ResourceSlice],
) -> dict[str, list[_Device]]:
    """List the devices of each node, in the order in which people count."""
    nodes: dict[str, list[_Device]] = {}
    for each in slices:
        name = each.spec.node_name or _ANYWHERE
        devices = nodes.setdefault(name, [])
        devices += [
            (each.spec.driver, each.spec.pool.name, device.name)
            for device in each.spec.devices
        ]
    return nodes


def _write(nodes: Mapping[str, list[_Device]], holders: Holders, taken: Holders) -> str:
    colors = _choose_colors(taken.values())
    parts: list[str] = []
    x, y, row_height = 0, 0, 0
    tile_width = _COLUMNS * (_CELL + _GAP) - _GAP + 2 * _PAD
    for name in sorted(nodes, key=_count_along):
        devices = nodes[name]
        rows = max(1, -(-len(devices) // _COLUMNS))
        height = rows * (_CELL + _GAP) - _GAP + 2 * _PAD + _TITLE
        if x and x + tile_width > _WIDTH:
            x, y, row_height = 0, y + row_height + _PAD, 0
        parts.append(
            f'<rect x="{x}" y="{y}" width="{tile_width}" height="{height}" rx="5" '
            'fill="#fbfcfd" stroke="#dde3ea"/>'
        )
        parts.append(_text(x + _PAD, y + _TITLE - 2, name))
        for index, device in enumerate(devices):
            row, column = divmod(index, _COLUMNS)
            gang = taken.get(device, "")
            holder = gang or holders.get(device, "")
            color = colors[gang] if gang else _HELD if holder else _FREE
            left = x + _PAD + column * (_CELL + _GAP)
            top = y + _TITLE + _PAD + row * (_CELL + _GAP)
            title = f"{'/'.join(device)}: {holder or 'free'}"
            parts.append(_square(left, top, color, title))
        x, row_height = x + tile_width + _PAD, max(row_height, height)
    top = y + row_height + 2 * _PAD
    legend = [(_FREE, "free"), (_HELD, "held before")]
    legend += [(color, gang) for gang, color in colors.items()]
    for index, (color, text) in enumerate(legend):
        line = top + index * (_CELL + _PAD)
        parts.append(_square(0, line, color, ""))
        parts.append(_text(_CELL + _PAD, line + _CELL - 3, text))
    whole = top + len(legend) * (_CELL + _PAD)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {whole}" '
        f'width="{_WIDTH}" height="{whole}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>'
    )


def _count_along(name: str) -> list[tuple[int, str]]:
    """Order names as people count: `gpu-2` before `gpu-10`."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _square(x: int, y: int, color: str, title: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" rx="2" '
        f'fill="{color}"><title>{escape(title)}</title></rect>'
    )


def _text(x: int, y: int, text: str) -> str:
    return f'<text x="{x}" y="{y}" fill="#17202b">{escape(text)}</text>'


def _choose_colors(gangs: Iterable[str]) -> dict[str, str]:
    """Give each gang a colour, as far apart as they can be and none that of free."""
    names = sorted(set(gangs))
    return {
        gang: f"hsl({200 + 200 * index // len(names)} 60% 48%)"
        for index, gang in enumerate(names)
    }
