"""Names of many things on one line. Pure."""

from __future__ import annotations

from collections.abc import Collection

_MOST_NAMED = 5


def name_some(names: Collection[str], most: int = _MOST_NAMED) -> str:
    """Name the first few in order, and count the others."""
    shown = ", ".join(sorted(names)[:most])
    hidden = len(names) - most
    return f"{shown} and {hidden} more" if hidden > 0 else shown
