"""Names of many things on one line, and of gangs that have the same name."""

from __future__ import annotations

from collections.abc import Collection

from contracts.lifecycle import GangRecord
from moorings.views.ages import format_age, measure_age

_MOST_NAMED = 5


def name_some(names: Collection[str], most: int = _MOST_NAMED) -> str:
    """Name the first few in order, and count the others."""
    shown = ", ".join(sorted(names)[:most])
    hidden = len(names) - most
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def tell_apart(record: GangRecord) -> str:
    """Name a gang so that it differs from others of its name."""
    age = ""
    if record.submission is not None:
        age = f", {format_age(measure_age(record.submission.submitted_at))}"
    return f"{record.uid} ({record.namespace}/{record.name}, {record.phase}{age})"
