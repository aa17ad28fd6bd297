"""What differs between upstream's answer to a case and ours, in words.

Both answers have the oracle's form. Share ids count as there or not, quantities by
value, node selectors as sets; everything else is compared as it is, in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from tests.oracles.differential.draw import Json

PANIC = "a crash of upstream, where we may say what is wrong"
ERRORS = {
    "panic: ": PANIC,
    "has subrequests, but": "alternatives are off",
    "has capacity requests, but": "capacity requests are off",
    "admin access is requested": "admin access is off",
    "request with derived attributes": "derived attributes are off",
    "compile derived attribute": "derived attribute does not compile",
    "evaluate derived attribute": "derived attribute fails",
    "CEL expression empty": "selector without CEL",
    "missing device class name": "missing device class name",
    "could not retrieve device class": "class not found",
    "is too large": "count too large",
    "unsupported count mode": "unknown mode",
    "empty constraint": "empty constraint",
    "exceeds the claim limit": "over 32 devices",
    "is currently being updated": "all of an incomplete pool",
    "is currently invalid": "all of an invalid pool",
    "capacity for device": "amount not representable",
    "CEL compile error": "selector does not compile",
    "CEL runtime error": "selector fails",
    "claim constraint would not be satisfied": "all against a constraint",
    "failed to parse node selector": "malformed node selector",
    "gather pool information": "malformed node selector",
    "create NodeSelector": "node selector of several terms",
    "invalid resource pools were encountered": "invalid pools",
    "filter operation aborted": "aborted",
}
"""Stable phrases of upstream's errors, first match first, and what they mean."""

_SCALES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{unit: Fraction(1000**i) for i, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Fraction(1024**i) for i, unit in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([numkKMGTPE]?i?))")


def compare(theirs: Json, ours: Json) -> list[str]:
    """List what differs; empty: the answers are the same."""
    if theirs["outcome"] != ours["outcome"]:
        return [f"outcome: {_told(theirs)} upstream, {_told(ours)} here"]
    if theirs["outcome"] != "success":
        wanted, found = error_of(theirs), error_of(ours)
        if wanted in (found, PANIC):
            return []
        return [f"error: {_told(theirs)} upstream, {_told(ours)} here"]
    wanted_list, found_list = _allocations(theirs), _allocations(ours)
    if len(wanted_list) != len(found_list):
        return [f"allocations: {len(wanted_list)} upstream, {len(found_list)} here"]
    return [
        f"claim {number}: {difference}"
        for number, pair in enumerate(zip(wanted_list, found_list, strict=True))
        for difference in _allocation(*pair)
    ]


def error_of(answer: Json) -> str:
    """Name what an error means; a text that nobody knows stays as it is."""
    text = answer.get("error") or ""
    return next((name for part, name in ERRORS.items() if part in text), text)


def quantity(text: Any) -> Fraction:
    """Read a quantity, exactly."""
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    digits, exponent, suffix = match.groups()
    scale = Fraction(10) ** int(exponent) if exponent else _SCALES[suffix or ""]
    return Fraction(digits) * scale


def _told(answer: Json) -> str:
    text = answer.get("error")
    return f"{answer['outcome']} ({text})" if text else str(answer["outcome"])


def _allocations(answer: Json) -> list[Json]:
    return list(answer.get("allocations") or ())


def _allocation(theirs: Json, ours: Json) -> Iterator[str]:
    wanted, found = theirs.get("devices") or {}, ours.get("devices") or {}
    wanted_results = [_result(item) for item in wanted.get("results") or ()]
    found_results = [_result(item) for item in found.get("results") or ()]
    if [_device(item) for item in wanted_results] != [
        _device(item) for item in found_results
    ]:
        listed = [
            ", ".join(" ".join(_device(item)) for item in results) or "nothing"
            for results in (wanted_results, found_results)
        ]
        yield f"devices: {listed[0]} upstream, {listed[1]} here"
    else:
        for number, pair in enumerate(zip(wanted_results, found_results, strict=True)):
            for key, (one, other) in _unequal(*pair).items():
                yield f"result {number}: {key}: {one} upstream, {other} here"
    wanted_config = [_filled(item) for item in wanted.get("config") or ()]
    found_config = [_filled(item) for item in found.get("config") or ()]
    if wanted_config != found_config:
        yield f"config: {wanted_config} upstream, {found_config} here"
    wanted_nodes = _terms(theirs.get("nodeSelector"))
    found_nodes = _terms(ours.get("nodeSelector"))
    if wanted_nodes != found_nodes:
        one, other = theirs.get("nodeSelector"), ours.get("nodeSelector")
        yield f"nodeSelector: {one} upstream, {other} here"


def _device(result: Json) -> tuple[str, ...]:
    return tuple(
        str(result.get(key)) for key in ("request", "driver", "pool", "device")
    )


def _result(raw: Json) -> Json:
    made = _filled(raw)
    if "shareID" in made:
        made["shareID"] = "some"
    if consumed := made.get("consumedCapacity"):
        made["consumedCapacity"] = {
            name: str(quantity(value)) for name, value in consumed.items()
        }
    return made


def _filled(raw: Json) -> Json:
    """Leave out what is empty: nothing and an empty list are written alike."""
    return {key: value for key, value in raw.items() if value not in (None, [], {}, "")}


def _unequal(theirs: Json, ours: Json) -> dict[str, tuple[Any, Any]]:
    return {
        key: (theirs.get(key), ours.get(key))
        for key in sorted({*theirs, *ours})
        if theirs.get(key) != ours.get(key)
    }


def _terms(selector: Json | None) -> list[Any] | None:
    if selector is None:
        return None
    return [
        tuple(
            frozenset(
                (row["key"], row["operator"], frozenset(row.get("values") or ()))
                for row in term.get(field) or ()
            )
            for field in ("matchExpressions", "matchFields")
        )
        for term in selector.get("nodeSelectorTerms") or ()
    ]
