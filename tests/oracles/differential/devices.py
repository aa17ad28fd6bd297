"""Devices: attributes of every kind, taints, conditions, shares of counters."""

from __future__ import annotations

from typing import Any

from tests.oracles.differential.capacities import capacities
from tests.oracles.differential.draw import Draw, Json

ROOT = "fabric.example.com/root"
ATTRIBUTES = ("model", "numa", "healthy", "firmware", "links", "ports", ROOT)
"""What devices say of themselves; `ROOT` means the same to all drivers."""
CONDITION = "fabric.example.com/attached"
TAINTS = ("maintenance.example.com", "wear.example.com")


def device(draw: Draw, driver: str, name: str) -> Json:
    """Make one device of a driver."""
    shareable = draw.says("shares", 0.75)
    made: Json = {"name": name, "attributes": _attributes(draw, driver)}
    if (held := capacities(draw, driver, shareable=shareable)) and (
        shareable or draw.chance(0.6)
    ):
        made["capacity"] = held
    if shareable:
        draw.tag("shareable")
        made["allowMultipleAllocations"] = True
    elif draw.says("shares", 0.3):
        made["allowMultipleAllocations"] = False
    if draw.says("taints", 0.55):
        draw.tag("taints")
        made["taints"] = [_taint(draw) for _ in range(draw.number(1, 2))]
    if draw.about("binding"):
        made.update(_binding(draw))
    return made


def _attributes(draw: Draw, driver: str) -> Json:
    found: Json = {}
    for name in ATTRIBUTES:
        if draw.says("sparse", 0.12):
            draw.tag("attribute-missing")
            continue
        if (value := _value(draw, name)) is not None:
            qualified = "/" not in name and draw.chance(0.1)
            found[f"{driver}/{name}" if qualified else name] = value
    if draw.says("odd", 0.06):
        draw.tag("attribute-broken")
        found["broken"] = draw.one(({}, {"version": "not-a-version"}))
    return found


def _value(draw: Draw, name: str) -> Json | None:
    mixed = draw.says("lists", 0.08) or draw.says("odd", 0.05)
    if name == ROOT:
        return {"string": draw.one(("r0", "r0", "r1"))}
    if name == "links":
        return _list(draw, "ints", (0, 1, 2, 3), mixed=mixed)
    if name == "ports":
        return _list(draw, "strings", ("a", "b", "c"), mixed=mixed)
    if name == "numa":
        if mixed:
            draw.tag("attribute-mixed")
            return {"ints": [0, 1]} if draw.chance(0.5) else {"string": "0"}
        return {"int": draw.one((0, 0, 1, 2))}
    if name == "model":
        return {"string": draw.one(("a", "a", "b", "c"))}
    if name == "healthy":
        return {"bool": draw.chance(0.75)}
    return {"version": draw.one(("1.0.0", "1.2.3", "1.2.3+b", "2.0.0-rc.1", "10.0.0"))}


def _list(
    draw: Draw, field: str, values: tuple[Any, ...], *, mixed: bool
) -> Json | None:
    if not draw.about("lists"):
        return None
    draw.tag("list-attribute")
    if mixed:
        others: tuple[Json, ...] = (
            {field: []},
            {field[:-1]: values[0]},
            {"bools": [True]},
        )
        return draw.one(others)
    if draw.chance(0.1):
        return {"versions": draw.some(("1.0.0", "1.2.3", "2.0.0"), 1, 2)}
    return {field: draw.some(values, 1, 3)}


def _taint(draw: Draw) -> Json:
    effects = ("NoSchedule", "NoExecute", "NoSchedule", "None", "Unknown")
    taint = {"key": draw.one(TAINTS), "effect": draw.one(effects)}
    if draw.chance(0.5):
        taint["value"] = draw.one(("yes", "no"))
    return taint


def _binding(draw: Draw) -> Json:
    made: Json = {}
    if draw.chance(0.4):
        draw.tag("binding")
        made["bindingConditions"] = [CONDITION]
        made["bindingFailureConditions"] = ["fabric.example.com/failed"]
    elif draw.chance(0.15):
        draw.tag("binding-empty")
        made["bindingConditions"] = []
    if draw.chance(0.2):
        draw.tag("binds-to-node")
        made["bindsToNode"] = draw.chance(0.8)
    return made
