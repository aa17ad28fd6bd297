"""Claims and classes: what is asked, in every way that the API knows."""

from __future__ import annotations

from tests.oracles.differential.capacities import wanted
from tests.oracles.differential.constraints import DERIVED, constraints, names_of
from tests.oracles.differential.devices import TAINTS
from tests.oracles.differential.draw import Draw, Json
from tests.oracles.differential.expressions import derived, selectors
from tests.oracles.differential.pools import DRIVERS

CLASSES = {"gpu": DRIVERS[0], "nic": DRIVERS[1], "any": DRIVERS[0], "some": DRIVERS[0]}
"""Class by name, and whose attributes its requests look at."""


def classes(draw: Draw) -> list[Json]:
    """Make the classes: by driver, by anything, by nothing."""
    found = []
    for name, driver in CLASSES.items():
        rules: list[Json] = []
        if name in ("gpu", "nic"):
            rules = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
        elif name == "some":
            rules = selectors(draw, driver, 0.9)
        spec: Json = {"selectors": rules} if rules else {}
        if draw.says("config", 0.6):
            spec["config"] = [
                _opaque(draw, f"{name}-{n}") for n in range(draw.number(1, 2))
            ]
        found.append({"metadata": {"name": name}, "spec": spec})
    return found


def claims(draw: Draw, *, drivers: set[str]) -> list[Json]:
    """Make the claims of one pod."""
    count = draw.one((1, 1, 1, 1, 2, 2, 3))
    if draw.chance(0.004):
        draw.tag("no-claims")
        count = 0
    if count > 1:
        draw.tag("claims")
    found = [_claim(draw, f"claim-{number}", drivers) for number in range(count)]
    if count > 1 and draw.chance(0.04):
        draw.tag("claim-name-twice")
        found[-1]["metadata"]["name"] = "claim-0"
    return found


def _claim(draw: Draw, name: str, drivers: set[str]) -> Json:
    count = 0 if draw.chance(0.01) else draw.one((1, 1, 1, 2, 2, 3))
    requests = [_request(draw, f"req-{number}", drivers) for number in range(count)]
    if len(requests) > 1 and draw.says("odd", 0.05):
        draw.tag("request-name-twice")
        requests[1]["name"] = requests[0]["name"]
    spec: Json = {"requests": requests}
    if rules := constraints(draw, requests):
        spec["constraints"] = rules
    if draw.says("config", 0.7):
        spec["config"] = _config(draw, requests)
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"devices": spec},
    }


def _request(draw: Draw, name: str, drivers: set[str]) -> Json:
    if draw.says("odd", 0.01):
        draw.tag("request-empty")
        return {"name": name}
    if draw.says("alternatives", 0.75) or draw.chance(0.04):
        draw.tag("first-available")
        subs = [
            {"name": f"sub-{number}", **_ask(draw, drivers)}
            for number in range(draw.number(1, 3))
        ]
        return {"name": name, "firstAvailable": subs}
    exactly = _ask(draw, drivers)
    if draw.says("admin", 0.45):
        draw.tag("admin")
        exactly["adminAccess"] = draw.chance(0.9)
    return {"name": name, "exactly": exactly}


def _ask(draw: Draw, drivers: set[str]) -> Json:
    name = draw.one([name for name, of in CLASSES.items() if of in drivers])
    driver = CLASSES[name]
    if draw.says("odd", 0.03):
        draw.tag("class-missing")
        name = draw.one(("absent", ""))
    asked: Json = {"deviceClassName": name, **_mode(draw)}
    if rules := selectors(draw, driver, 0.7 if draw.about("selectors") else 0.12):
        asked["selectors"] = rules
    if draw.says("taints", 0.6):
        draw.tag("tolerations")
        asked["tolerations"] = [_toleration(draw) for _ in range(draw.number(1, 2))]
    if draw.says("shares", 0.6) or draw.chance(0.02):
        draw.tag("capacity-request")
        asked["capacity"] = {"requests": wanted(draw, driver)}
    if draw.says("derived", 0.8):
        draw.tag("derived-attributes")
        asked["derivedAttributes"] = [
            {"name": DERIVED, "expression": derived(draw, driver)}
        ]
    return asked


def _mode(draw: Draw) -> Json:
    if draw.says("all", 0.6) or draw.chance(0.02):
        draw.tag("all")
        return {"allocationMode": "All", **({"count": 1} if draw.chance(0.05) else {})}
    if draw.says("odd", 0.05):
        draw.tag("mode-unknown")
        return draw.one(({"count": 1}, {"allocationMode": "Half", "count": 1}))
    count = draw.one((1, 1, 1, 1, 2, 2, 3))
    if draw.says("large", 0.3):
        draw.tag("count-large")
        count = draw.one((16, 17, 20, 32, 33))
    if draw.says("odd", 0.06):
        draw.tag("count-odd")
        count = draw.one((0, 0, 33))
    asked: Json = {"allocationMode": "ExactCount"}
    return asked | ({"count": count} if count else {})


def _toleration(draw: Draw) -> Json:
    key = draw.one((*TAINTS, ""))
    made: Json = {"key": key} if key else {}
    if not key or draw.chance(0.5):
        made["operator"] = "Exists"
    else:
        if draw.chance(0.7):
            made["operator"] = "Equal"
        made["value"] = draw.one(("yes", "no"))
    if draw.chance(0.4):
        made["effect"] = draw.one(("NoSchedule", "NoExecute"))
    if made.get("effect") == "NoExecute" and draw.chance(0.5):
        made["tolerationSeconds"] = 60
    if draw.says("odd", 0.1):
        made["operator"] = draw.one(("", "Like"))
    return made


def _config(draw: Draw, requests: list[Json]) -> list[Json]:
    draw.tag("config")
    found = []
    for number in range(draw.number(1, 3)):
        entry = _opaque(draw, f"claim-{number}")
        if names := draw.some(names_of(requests), 0, 2):
            entry["requests"] = names
        found.append(entry)
    return found


def _opaque(draw: Draw, text: str) -> Json:
    parameters = {"kind": text, "level": draw.number(0, 3)}
    return {"opaque": {"driver": draw.one(DRIVERS), "parameters": parameters}}
