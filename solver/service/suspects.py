"""Gangs that failed alone, and how long each rests before it is tried again.

A gang is remembered by what its objects say, in its namespace: submitted again as
another gang it is known, and once its objects say something else it is not. All of them
together get a tenth of the time; the rest is for gangs that harm nobody.

Pure; times are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from contracts.ids import Namespace

FIRST_REST_S = 15.0
"""Doubled with each failure."""
MAX_REST_S = 1800.0
MOST_REMEMBERED = 4096
SHARE = 9
"""So many times as long as a failure took, no other suspect is tried."""


class Sign(NamedTuple):
    """By what a gang is known again."""

    namespace: Namespace
    content: str
    """A digest of what its objects say, whatever its name."""


class _Suspect(NamedTuple):
    failures: int
    until: float


class Suspects:
    """Who failed alone, how often, and until when it rests."""

    def __init__(self) -> None:
        self._suspects: OrderedDict[Sign, _Suspect] = OrderedDict()
        self._free_at = 0.0
        """From then on another suspect may be tried."""

    def concern(self, namespace: Namespace) -> bool:
        """True if a gang of the namespace could be one of them."""
        return any(sign.namespace == namespace for sign in self._suspects)

    def __contains__(self, sign: Sign) -> bool:
        return sign in self._suspects

    def rest_until(self, sign: Sign) -> float:
        """Return from when on it may be tried."""
        suspect = self._suspects.get(sign)
        return 0.0 if suspect is None else max(suspect.until, self._free_at)

    def note_failure(self, sign: Sign, *, now: float, cost_s: float) -> float:
        """Take note that it failed alone; returns until when it rests."""
        before = self._suspects.pop(sign, None)
        failures = 1 if before is None else before.failures + 1
        rest_s = FIRST_REST_S * 2.0 ** min(failures - 1, 16)
        until = now + min(max(rest_s, cost_s), MAX_REST_S)
        self._suspects[sign] = _Suspect(failures, until)
        if len(self._suspects) > MOST_REMEMBERED:
            self._suspects.popitem(last=False)
        self._free_at = now + SHARE * cost_s
        return until

    def clear(self, sign: Sign) -> None:
        """Forget a failure: it could be decided."""
        self._suspects.pop(sign, None)
