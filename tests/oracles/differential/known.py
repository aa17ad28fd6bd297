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


KNOWN = (
    KnownDifference(
        name="tolerations-of-the-namesake",
        reason="upstream copies tolerations from the first request of that name; "
        "we keep requests apart by their place, and the API refuses such claims",
        applies=_request_named_twice,
    ),
)
