"""Durations as people write them: `90s`, `2h30m`, `1.5h`.

Source: k8s.io/apimachinery metav1.Duration, Go's time.ParseDuration; of its units those
from a second on.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import ceil

MOST_CHARACTERS = 40
LONGEST_S = 10 * 365 * 86_400
_UNITS_S = {"h": 3600, "m": 60, "s": 1}
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)([hms])", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
FORM = "a duration such as 90s, 45m or 2h30m, of at least a second and at most 10 years"


@lru_cache(maxsize=4096)
def parse_duration(text: str) -> int:
    """Read a duration; a part of a second counts as a whole one.

    Returns:
        Seconds, at least 1.

    Raises:
        ValueError: it is none, or too short or too long.
    """
    if len(text) > MOST_CHARACTERS or not _WHOLE.fullmatch(text):
        raise ValueError(f"must be {FORM}")
    parts = _PART.findall(text)
    seconds = ceil(sum(float(amount) * _UNITS_S[unit] for amount, unit in parts))
    if not 1 <= seconds <= LONGEST_S:
        raise ValueError(f"must be {FORM}")
    return seconds
