"""Capacities, their request policies, and amounts that claims ask for."""

from __future__ import annotations

from tests.oracles.differential.draw import Draw, Json

_WHOLE = ("4", "6", "8", "10")
_BYTES = ("4Gi", "8Gi", "10Gi", "16Gi")
_FRACTIONS = ("2500m", "3", "4", "1500m")
NAMES = ("memory", "slots", "share")
"""Capacities of devices: bytes, whole numbers, fractions."""


def capacities(draw: Draw, driver: str, *, shareable: bool) -> Json:
    """Give a device its capacities; only shareable ones have policies."""
    found: Json = {}
    for name in draw.some(NAMES, 0 if draw.chance(0.1) else 1, 2):
        value = draw.one(_values(name))
        entry: Json = {"value": value}
        if (shareable or draw.says("odd", 0.1)) and draw.chance(0.65):
            entry["requestPolicy"] = _policy(draw, name)
        qualified = draw.chance(0.06)
        found[f"{driver}/{name}" if qualified else name] = entry
    return found


def wanted(draw: Draw, driver: str) -> Json:
    """Choose what a request asks of each capacity."""
    found: Json = {}
    for name in draw.some(NAMES, 1, 2):
        key = f"{driver}/{name}" if draw.chance(0.04) else name
        found[key] = draw.one(_amounts(name))
    if draw.chance(0.04):
        draw.tag("capacity-unknown")
        found["nothing"] = "1"
    if draw.says("odd", 0.25):
        draw.tag("capacity-odd-amount")
        found[draw.one(NAMES)] = draw.one(
            ("-1", "3000500u", "1n", "9223372036854775807", "10E", "1e21", "0")
        )
    return found


def used(draw: Draw, capacity: Json) -> Json:
    """Choose how much of each capacity a share of another claim holds."""
    return {
        name: draw.one(("0", *_amounts(name.split("/")[-1])[:2]))
        for name in capacity
        if not draw.chance(0.1)
    }


def _values(name: str) -> tuple[str, ...]:
    return {"memory": _BYTES, "slots": _WHOLE, "share": _FRACTIONS}[name]


def _amounts(name: str) -> tuple[str, ...]:
    return {
        "memory": ("1Gi", "2Gi", "3Gi", "4Gi", "1500Mi", "6Gi", "20Gi"),
        "slots": ("1", "2", "3", "4", "5", "500m", "1500m"),
        "share": ("500m", "1", "250m", "1100m", "2", "1700m"),
    }[name]


def _policy(draw: Draw, name: str) -> Json:
    unit, half, most = {
        "memory": ("1Gi", "2Gi", "8Gi"),
        "slots": ("1", "2", "4"),
        "share": ("500m", "1", "2"),
    }[name]
    kind = draw.one(("default", "values", "range", "steps", "max", "steps"))
    draw.tag(f"policy-{kind}")
    policy: Json = {"default": draw.one((unit, unit, half, "0"))}
    if kind == "values":
        policy["validValues"] = [unit, half, most]
    elif kind != "default":
        bounds: Json = {"min": draw.one((unit, unit, "0"))}
        if kind == "steps":
            bounds["step"] = draw.one((unit, half, "250m", "1"))
        if kind == "max" or draw.chance(0.4):
            bounds["max"] = most
        policy["validRange"] = bounds
    if draw.says("odd", 0.1):
        del policy["default"]
    return policy
