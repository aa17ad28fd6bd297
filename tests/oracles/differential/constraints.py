"""Constraints over the devices of one claim."""

from __future__ import annotations

from tests.oracles.differential.devices import ATTRIBUTES, ROOT
from tests.oracles.differential.draw import Draw, Json
from tests.oracles.differential.pools import DRIVERS

DERIVED = "derived.example.com/group"
"""The derived attribute that some requests define."""


def constraints(draw: Draw, requests: list[Json]) -> list[Json]:
    """Choose the constraints of a claim; mostly none."""
    found = []
    for kind in ("match", "distinct"):
        if draw.says(kind, 0.75):
            found += [_of_kind(draw, kind) for _ in range(draw.one((1, 1, 2)))]
    if draw.says("lists", 0.6):
        found.append(_of_kind(draw, draw.one(("match", "distinct"))))
    if draw.says("derived", 0.7):
        draw.tag("derived-constraint")
        field = draw.one(("matchAttribute", "matchAttribute", "distinctAttribute"))
        found.append({field: DERIVED})
    if draw.says("odd", 0.05):
        draw.tag("constraint-empty")
        found.append({})
    for item in found:
        if names := _scope(draw, requests):
            item["requests"] = names
    return found


def _of_kind(draw: Draw, kind: str) -> Json:
    draw.tag(kind)
    if draw.says("odd", 0.03):
        return {"matchAttribute": ROOT, "distinctAttribute": ROOT}
    return {f"{kind}Attribute": _attribute(draw)}


def _attribute(draw: Draw) -> str:
    if draw.chance(0.02):
        return draw.one(("nothing.example.com/x", "root", f"{DRIVERS[0]}/nothing"))
    if draw.says("lists", 0.7):
        return f"{DRIVERS[0]}/{draw.one(('links', 'ports'))}"
    names = [name for name in ATTRIBUTES if name not in ("links", "ports", ROOT)]
    if draw.chance(0.35):
        return ROOT
    return f"{DRIVERS[0] if draw.chance(0.9) else DRIVERS[1]}/{draw.one(names)}"


def _scope(draw: Draw, requests: list[Json]) -> list[str]:
    if draw.chance(0.45):
        return []
    if draw.chance(0.02):
        return ["nobody"]
    names = draw.some(names_of(requests), 1, 3)
    if any("/" in name for name in names):
        draw.tag("constraint-subrequest")
    return names


def names_of(requests: list[Json]) -> list[str]:
    """List every name that a constraint or a config may use."""
    found = []
    for request in requests:
        found.append(request["name"])
        subs = request.get("firstAvailable", ())
        found += [f"{request['name']}/{sub['name']}" for sub in subs]
    return list(dict.fromkeys(found))
