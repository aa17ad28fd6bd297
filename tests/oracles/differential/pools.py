"""Pools: how devices are spread over slices, generations and counters."""

from __future__ import annotations

from copy import deepcopy
from itertools import count

from tests.oracles.differential.devices import device
from tests.oracles.differential.draw import Draw, Json
from tests.oracles.differential.nodes import NODE, OTHER, place, selector

DRIVERS = ("gpu.example.com", "nic.example.com")
_SETS = ("card-0", "card-1")
_OPERATIONS: tuple[list[str], ...] = (["*"], ["NodePrepareResources"], [])
_GROUPS = ("red", "green", "blue")


def slices(draw: Draw) -> list[Json]:
    """Make all slices of the cluster."""
    names = [(DRIVERS[0], NODE)]
    if draw.about("pools") or draw.chance(0.4):
        names += draw.some(
            [(DRIVERS[1], NODE), (DRIVERS[0], "rack/a"), (DRIVERS[1], "shared")], 1, 2
        )
    found = [made for driver, pool in names for made in _pool(draw, driver, pool)]
    return draw.shuffled(found) if draw.says("order", 0.7) else found


def _pool(draw: Draw, driver: str, pool: str) -> list[Json]:
    where = place(draw) if draw.says("where", 0.75) else {"nodeName": NODE}
    per_device = draw.says("where", 0.3)
    counted = draw.says("counters", 0.8)
    specs: list[Json] = []
    sets: list[str] = []
    if counted:
        draw.tag("counters")
        specs.append({"sharedCounters": _counter_sets(draw)})
        sets = [item["name"] for item in specs[0]["sharedCounters"]]
    large = draw.says("large", 0.6)
    numbers = count()
    for _ in range(draw.one((1, 1, 1, 2, 3))):
        size = draw.one((20, 34)) if large else draw.one((1, 2, 2, 3, 3, 4, 5, 6, 8))
        made = [device(draw, driver, f"dev-{next(numbers)}") for _ in range(size)]
        if counted:
            for one in made:
                _consume(draw, one, sets)
        specs.append({"devices": made})
        if draw.says("pools", 0.04):
            draw.tag("counters-beside-devices")
            specs[-1]["sharedCounters"] = [{"name": f"own-{len(specs)}"}]
    for spec in specs:
        spec.update(_placed(draw, spec, where, per_device=per_device))
        if draw.says("skip", 0.5):
            draw.tag("skip-node-operations")
            spec["skipNodeOperations"] = draw.one(_OPERATIONS)
    if draw.says("order", 0.3) or draw.says("pools", 0.2):
        _break(draw, specs)
    return _named(draw, driver, pool, specs)


def _placed(draw: Draw, spec: Json, where: Json, *, per_device: bool) -> Json:
    if per_device:
        draw.tag("per-device")
        for one in spec.get("devices", ()):
            one.update(place(draw) if draw.chance(0.5) else {"nodeName": NODE})
        return {"perDeviceNodeSelection": True}
    if draw.says("where", 0.15):
        return place(draw)
    if "nodeSelector" in where:
        return {
            "nodeSelector": selector(draw)
            if draw.chance(0.3)
            else deepcopy(where["nodeSelector"])
        }
    return dict(where)


def _counter_sets(draw: Draw) -> list[Json]:
    sets = [
        {
            "name": name,
            "counters": {
                "memory": {"value": draw.one(("16Gi", "20Gi"))},
                "engines": {"value": draw.one(("4", "7", "8"))},
            },
        }
        for name in draw.some(_SETS, 1, 2)
    ]
    if draw.says("pools", 0.05):
        draw.tag("counter-set-twice")
        sets.append(deepcopy(sets[0]))
    return sets


def _consume(draw: Draw, one: Json, sets: list[str]) -> None:
    if draw.chance(0.2):
        return
    found = []
    names = ["card-9"] if draw.says("odd", 0.03) else list(dict.fromkeys(sets))
    for name in draw.some(names, 1, 2 if draw.chance(0.1) else 1):
        entry: Json = {
            "counterSet": name,
            "counters": {"engines": {"value": draw.one(("1", "2", "4", "7"))}},
        }
        if draw.chance(0.5):
            entry["counters"]["memory"] = {"value": draw.one(("4Gi", "8Gi", "16Gi"))}
        if draw.says("odd", 0.03):
            entry["counters"]["fans"] = {"value": "1"}
        if draw.says("groups", 0.7):
            draw.tag("compatibility-groups")
            entry["compatibilityGroups"] = draw.some(_GROUPS, 0, 2)
        found.append(entry)
    one["consumesCounters"] = found


def _break(draw: Draw, specs: list[Json]) -> None:
    """Give two devices of a pool one name."""
    listed = [one for spec in specs for one in spec.get("devices", ())]
    if len(listed) > 1 and draw.chance(0.4):
        draw.tag("device-twice")
        one, other = draw.some(listed, 2, 2)
        one["name"] = other["name"]


def _named(draw: Draw, driver: str, pool: str, specs: list[Json]) -> list[Json]:
    generation = draw.number(2, 3) if draw.about("generations") else 1
    total = len(specs)
    if draw.says("generations", 0.25) or draw.says("pools", 0.12):
        draw.tag("incomplete")
        total += draw.one((-1, 1, 2))
    made = [_slice(draw, (driver, pool), generation, total, spec) for spec in specs]
    if draw.says("generations", 0.6):
        draw.tag("old-generation")
        old = deepcopy(draw.one(specs))
        if draw.chance(0.5):
            old = {key: old[key] for key in ("devices", "sharedCounters") if key in old}
            old["nodeName"] = draw.one((NODE, OTHER))
        made.append(_slice(draw, (driver, pool), generation - 1, total, old))
    if draw.says("generations", 0.25):
        draw.tag("newer-elsewhere")
        newer = {"nodeName": OTHER, "devices": [device(draw, driver, "dev-90")]}
        made.append(_slice(draw, (driver, pool), generation + 1, 1, newer))
    if draw.says("generations", 0.3):
        made = draw.some(made, 1, len(made))
    names = [item["metadata"]["name"] for item in made]
    for index, item in enumerate(made):
        if names.index(item["metadata"]["name"]) != index:
            item["metadata"]["name"] += f"-{index}"
    return made


def _slice(
    draw: Draw, of: tuple[str, str], generation: int, total: int, spec: Json
) -> Json:
    driver, pool = of
    number = draw.number(0, 99) if draw.about("order") else draw.number(0, 9)
    if draw.about("order"):
        draw.tag("slice-order")
    name = f"{number:02}-{driver}" if draw.about("order") else f"{driver}-{number}"
    listing = {"name": pool, "generation": generation, "resourceSliceCount": total}
    return {
        "metadata": {"name": name},
        "spec": {"driver": driver, "pool": listing, **spec},
    }
