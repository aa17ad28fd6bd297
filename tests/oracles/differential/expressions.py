"""Selectors in CEL: most work on every device, some fail on some or on all."""

from __future__ import annotations

from tests.oracles.differential.draw import Draw, Json

_SURE = (
    'device.driver == "{d}"',
    'device.driver.endsWith(".example.com")',
    '"model" in {a} && {a}.model == "a"',
    '!("model" in {a}) || {a}["model"] in ["a", "b"]',
    "has({a}.numa) && {a}.numa != 2",
    "{a}.?numa.orValue(0) == 0",
    "{a}.?healthy.orValue(false)",
    'has({a}.firmware) && {a}.firmware.isLessThan(semver("3.0.0"))',
    'has({c}.memory) && {c}.memory.compareTo(quantity("8Gi")) >= 0',
    '"slots" in {c} ? {c}.slots.isGreaterThan(quantity("3")) : true',
    '"nothing.example.com" in device.attributes || true',
    "size({a}) >= 3",
    "{a}.?model.orValue('x').matches('^[abx]$')",
    "{a}.transformMap(name, value, name.size()).all(k, v, k.size() == v)",
    "cel.bind(m, device.attributes, m['nothing.example.com'].size() == 0)",
    "cel.bind(d, device, d.driver == '{d}' && has(d.attributes.nothing))",
    "[device].all(d, d.driver == '{d}')",
    "{a}.?numa.orValue(0)" + " + 1" * 60 + " >= 60",
)
_PLAIN = (
    '{a}.model == "a"',
    '{a}.model.startsWith("a") || {a}.model == "b"',
    "{a}.numa <= 1",
    "{a}.numa in [0, 2]",
    "{a}.healthy",
    "{a}.healthy && {a}.numa < 2",
    '{a}.firmware.isGreaterThan(semver("1.2.0"))',
    'device.attributes["fabric.example.com"].root == "r0"',
)
"""These fail where the attribute is missing, or of another kind."""
_SHARED = ("device.allowMultipleAllocations", "!device.allowMultipleAllocations")
_LISTS = (
    "!has({a}.links) || 1 in {a}.links",
    "has({a}.ports) && {a}.ports.size() > 1",
    "{a}.?links.orValue([0]).size() > 0",
)
_FAILING = (
    "{a}.nothing == 1",
    'device.attributes["nothing.example.com"].x == 1',
    'quantity("x") == quantity("1")',
    'semver("1").major() == 1',
    "1 / 0 == 1",
    "{a}.model",
    "{a}.numa > 1 / ({a}.numa - 1)",
)
_BROKEN = (
    "device.nothing == 1",
    "nothing",
    "device.driver",
    "1 +",
    "device.driver.frobnicate()",
    '"a" + 1 == "a1"',
)


def selectors(draw: Draw, driver: str, chance: float) -> list[Json]:
    """Choose the selectors of a class or a request; mostly none."""
    if not draw.chance(chance):
        return []
    return [_selector(draw, driver) for _ in range(draw.one((1, 1, 1, 2)))]


def _selector(draw: Draw, driver: str) -> Json:
    if draw.says("odd", 0.02):
        draw.tag("selector-empty")
        return {}
    return {"cel": {"expression": spelled(_expression(draw), driver)}}


def _expression(draw: Draw) -> str:
    if draw.says("odd", 0.1):
        draw.tag("cel-broken")
        return draw.one(_BROKEN)
    if draw.says("selectors", 0.05) or draw.says("odd", 0.1):
        draw.tag("cel-failing")
        return draw.one(_FAILING)
    if draw.says("shares", 0.15):
        return draw.one(_SHARED)
    if draw.says("lists", 0.3):
        return draw.one(_LISTS)
    draw.tag("cel")
    return draw.one(_SURE if draw.chance(0.75) else _PLAIN)


def derived(draw: Draw, driver: str) -> str:
    """Choose what a derived attribute is computed from."""
    choices = (
        "{a}.?numa.orValue(7)",
        '{a}.?model.orValue("x") == "a"',
        "device.driver",
        "{a}.?firmware.orValue(semver('1.0.0'))",
        '{a}.?model.orValue("x") + "-" + string({a}.?numa.orValue(7))',
        "[{a}.?numa.orValue(7), {a}.?numa.orValue(8)]",
        "{a}.numa % 2",
        '["a", "b"]',
    )
    failing = (
        "null",
        "1.5",
        "{a}.nothing",
        "nothing",
        "[1.5]",
        "[]",
        "{a}.?numa",
        "[{a}.numa, 7]",
    )
    if draw.chance(0.06):
        draw.tag("derived-failing")
        return spelled(draw.one(failing), driver)
    return spelled(draw.one(choices), driver)


def spelled(expression: str, driver: str) -> str:
    """Write `{a}` and `{c}`, the driver's attributes and capacities, out."""
    return (
        expression.replace("{a}", f'device.attributes["{driver}"]')
        .replace("{c}", f'device.capacity["{driver}"]')
        .replace("{d}", driver)
    )
