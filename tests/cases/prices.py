"""Selectors that the API server takes, or refuses for what they may cost."""

from __future__ import annotations

from tests.cases.selectors import DRIVER, costly_selector

_TEN = "[0,1,2,3,4,5,6,7,8,9]"
_UUID = f'device.attributes["{DRIVER}"].uuid'


def doubled(doublings: int, replacements: int) -> str:
    """Double a text so often, then replace one of its characters by eight so often."""
    bound = "".join(f"cel.bind(b{n + 1}, b{n} + b{n}, " for n in range(doublings))
    replaced = ".replace('x', 'xxxxxxxx')" * replacements
    end = f"b{doublings}{replaced}.size() > 0" + ")" * (doublings + 1)
    return f"cel.bind(b0, {_UUID}, {bound}{end}"


def nested(levels: int) -> str:
    """Go through ten numbers for each of ten numbers, and so on."""
    loops = "".join(f"{_TEN}.all(v{n}, " for n in range(levels))
    return loops + "v0 >= 0" + ")" * levels


CHEAP = {
    "driver": f'device.driver == "{DRIVER}"',
    "attribute": f'{_UUID}.startsWith("GPU-") && {_UUID} in ["a", "b", "c"]',
    "version": f'device.attributes["{DRIVER}"].v.isGreaterThan(semver("1.2.3"))',
    "capacity": f'device.capacity["{DRIVER}"].m.compareTo(quantity("40Gi")) >= 0',
    "pattern": f'{_UUID}.matches("^GPU-[0-9a-f]+-(a|b|c)*$")',
    "optional": f'device.attributes["{DRIVER}"].?uuid.orValue("") != ""',
    "bind": f'cel.bind(d, device.attributes["{DRIVER}"], d.a && d.b)',
    "all attributes": f'device.attributes["{DRIVER}"].all(k, k != "x")',
    "lower": f'{_UUID}.lowerAscii().replace("gpu", "GPU").contains("GPU-")',
    "doubled a little": doubled(2, 1),
    "a thousand steps": nested(3),
    "slow in this engine": costly_selector(DRIVER),
}
DEAR = {
    "doubled and replaced": doubled(8, 8),
    "doubled": doubled(20, 0),
    "replaced": doubled(0, 8),
    "a million steps": nested(6),
    "text in all pairs of attributes": (
        f'device.attributes["{DRIVER}"].all(a, device.attributes["{DRIVER}"].all(b, '
        f'device.attributes["{DRIVER}"].all(c, device.attributes["{DRIVER}"].all(d, '
        "(a + b + c + d).contains(d + c + b + a)))))"
    ),
}
