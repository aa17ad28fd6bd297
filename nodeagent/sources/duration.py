"""Reads durations such as `20s`, `500ms` and `2m`: the fleet file's clock."""

from __future__ import annotations

import re

RULE = "must be a duration such as 500ms, 20s, 2m or 1h"

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration_s(value: str) -> float | None:
    """Read a duration as seconds; None when it is no duration."""
    match = _DURATION.fullmatch(value)
    return None if match is None else float(match[1]) * _SECONDS[match[2]]
