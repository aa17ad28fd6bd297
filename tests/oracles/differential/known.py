"""Differences from upstream that we know and mean, each by name and with its reason."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from tests.oracles.differential.compare import compare
from tests.oracles.differential.draw import Json


class KnownDifference(Struct, frozen=True, kw_only=True):
    """A difference that is meant: upstream's defect, or a limit of ours."""

    name: str
    reason: str
    applies: Callable[[Json, Json, Json], bool]
    """Asked with the case, upstream's answer and ours."""


def _request_named_twice(case: Json, theirs: Json, ours: Json) -> bool:
    names = [
        [item["name"] for item in claim["spec"]["devices"].get("requests") or ()]
        for claim in case["claims"]
    ]
    told = compare(theirs, ours)
    return any(len(set(of)) < len(of) for of in names) and all(
        ": tolerations: " in item for item in told
    )


def _shared_and_whole(case: Json, _theirs: Json, _ours: Json) -> bool:
    held = {_name(item) for item in case.get("allocatedShared", ())}
    whole = {
        (item["spec"]["driver"], item["spec"]["pool"]["name"], device["name"])
        for item in case["slices"]
        for device in item["spec"].get("devices") or ()
        if not device.get("allowMultipleAllocations")
    }
    return case["features"]["ConsumableCapacity"] and bool(held & whole)


def _name(item: Json) -> tuple[str, str, str]:
    return item["driver"], item["pool"], item["device"]


def _malformed(_case: Json, theirs: Json, ours: Json) -> bool:
    told = f"{theirs.get('error')} {ours.get('error')}"
    return any(words in told for words in _OF_MALFORMED)


_OF_MALFORMED = ("unsupported attribute value", "type is not supported by this version")


def _claim_named_twice(case: Json, _theirs: Json, _ours: Json) -> bool:
    names = [claim["metadata"]["name"] for claim in case["claims"]]
    return len(set(names)) < len(names)


KNOWN = (
    KnownDifference(
        name="whole-though-shared",
        reason="upstream gives out a device whole that others have shares of, once its "
        "driver does not let it be shared any more; 1.38 does not, nor do we",
        applies=_shared_and_whole,
    ),
    KnownDifference(
        name="tolerations-of-the-namesake",
        reason="upstream copies tolerations from the first request of that name; "
        "we keep requests apart by their place, and the API refuses such claims",
        applies=_request_named_twice,
    ),
)
KNOWN_138 = (
    KnownDifference(
        name="malformed-attributes",
        reason="1.38 reads an attribute only where something asks for it, and takes "
        "lists that are switched off, and derived versions, for malformed; the API "
        "server lets none of them through",
        applies=_malformed,
    ),
    KnownDifference(
        name="claims-of-one-name",
        reason="no namespace has two claims of one name",
        applies=_claim_named_twice,
    ),
)
"""Besides those: of the pre-release of 1.38."""
