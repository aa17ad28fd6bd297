"""Minimal cases: drop whatever is not needed for a case to differ.

Greedy, from whole claims and slices down to single fields; each step asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from tests.oracles.differential.case import DEFAULTS
from tests.oracles.differential.draw import Json

Path = tuple[str | int, ...]
_KEPT = frozenset(
    {
        "allocationMode",
        "cel",
        "claims",
        "classes",
        "counterSet",
        "device",
        "deviceClassName",
        "driver",
        "effect",
        "exactly",
        "expression",
        "features",
        "generation",
        "id",
        "key",
        "metadata",
        "name",
        "namespace",
        "node",
        "opaque",
        "operator",
        "pool",
        "resourceSliceCount",
        "shareID",
        "slices",
        "spec",
        "timeoutMs",
        "value",
    }
)
"""Fields without which a case is about something else."""


def shrink(case: Json, differs: Callable[[Json], bool], *, steps: int = 3000) -> Json:
    """Find a smaller case that still differs, with at most that many questions."""
    smaller, asked, progress = deepcopy(case), 0, True
    while progress:
        progress = False
        for path in sorted(_paths(smaller), key=len):
            for candidate in _without(smaller, path):
                asked += 1
                if asked > steps:
                    return smaller
                if differs(candidate):
                    smaller, progress = candidate, True
                    break
    return smaller


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Name everything that could go; later elements of a list first."""
    match value:
        case dict():
            for key, item in value.items():
                if path == ("features",):
                    if item != DEFAULTS[key]:
                        yield (*path, key)
                    continue
                yield from _paths(item, (*path, key))
                if key not in _KEPT:
                    yield (*path, key)
        case list():
            for index in reversed(range(len(value))):
                yield (*path, index)
                yield from _paths(value[index], (*path, index))
        case _:
            return


def _without(case: Json, path: Path) -> Iterator[Json]:
    """Give the case without that; a slice less may be one that is not missed."""
    made = deepcopy(case)
    holder: Any = made
    try:
        for step in path[:-1]:
            holder = holder[step]
        gone = holder[path[-1]]
    except (KeyError, IndexError, TypeError):
        return
    if path[0] == "features":
        holder[path[-1]] = DEFAULTS[str(path[-1])]
        yield made
        return
    del holder[path[-1]]
    if path[:-1] == ("slices",):
        yield _recounted(deepcopy(made), gone)
    yield made


def _recounted(case: Json, gone: Json) -> Json:
    for item in case["slices"]:
        spec, other = item["spec"], gone["spec"]
        if (spec["driver"], spec["pool"]) == (other["driver"], other["pool"]):
            spec["pool"]["resourceSliceCount"] -= 1
    return case
