"""What other claims hold: whole devices, and shares of some."""

from __future__ import annotations

from tests.oracles.differential.capacities import used
from tests.oracles.differential.draw import Draw, Json

_SHARE = "00000000-0000-0000-0000-{:012}"


def state(draw: Draw, slices: list[Json], *, sharing: bool) -> Json:
    """Choose held devices; without sharing every one of them is held whole."""
    chance = 0.35 if draw.about("state") else 0.03
    found: Json = {"allocated": [], "allocatedShared": [], "aggregatedCapacity": []}
    seen = set()
    for item in slices:
        spec = item["spec"]
        for device in spec.get("devices", ()):
            key = (spec["driver"], spec["pool"]["name"], device["name"])
            if key in seen or not draw.chance(chance):
                continue
            seen.add(key)
            shareable = device.get("allowMultipleAllocations", False)
            name = dict(zip(("driver", "pool", "device"), key, strict=True))
            if sharing and draw.chance(0.9 if shareable else 0.04):
                _share(draw, found, name, device)
            else:
                draw.tag("held")
                found["allocated"].append(name)
    if draw.says("state", 0.1):
        draw.tag("held-vanished")
        found["allocated"].append(
            {"driver": "gpu.example.com", "pool": "node-1", "device": "gone"}
        )
    return {key: value for key, value in found.items() if value}


def _share(draw: Draw, found: Json, name: Json, device: Json) -> None:
    draw.tag("shared")
    for _ in range(draw.one((1, 1, 2))):
        share = _SHARE.format(len(found["allocatedShared"]))
        found["allocatedShared"].append({**name, "shareID": share})
    capacity = used(draw, device.get("capacity", {}))
    if capacity:
        found["aggregatedCapacity"].append({**name, "capacity": capacity})
