"""The order of numbered names: `p-2` before `p-10`. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

_NUMBERS = re.compile(r"(\d+)")
_ORDERED = 50_000
"""So many names keep their places in the order."""


@lru_cache(maxsize=_ORDERED)
def order_naturally(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that compares the numbers in names as numbers."""
    parts = _NUMBERS.split(name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
