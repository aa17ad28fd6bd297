"""Of two agents of one node only the newer one announces it.

An incarnation begins with when it was made, so that two of them have an order. Pure.
"""

from __future__ import annotations

import re

_INCARNATION = re.compile(r"(\d{20})-[0-9a-f-]{36}", re.ASCII)


def make_incarnation(started_ns: int, unique: str) -> str:
    """Name a start of an agent: nanoseconds since 1970, and a UUID."""
    return f"{started_ns:020d}-{unique}"


def is_newer(other: str, own: str) -> bool:
    """True if another agent started after us; False if its start cannot be read."""
    return _INCARNATION.fullmatch(other) is not None and other > own
