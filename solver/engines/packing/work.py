"""Work: what a search has spent and may spend, counted and never timed.

One unit is about a second of one core. CP-SAT's deterministic time is counted as it
comes; what Python does is counted by steps, at rates as they were seen on two cores.
"""

from __future__ import annotations

from solver.stopping import is_stopped

UNIT = 1.5
"""Units of one of CP-SAT's deterministic time."""


class Work:
    """A limit, and what was spent of it."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self.spent = 0.0
        self.deterministic = 0.0
        """CP-SAT's own, for the record."""
        self.models = 0

    def spend(self, units: float) -> None:
        """Count units."""
        self.spent += units

    def spend_units(self, deterministic: float) -> None:
        """Count one model of CP-SAT by its deterministic time."""
        self.deterministic += deterministic
        self.models += 1
        self.spent += deterministic * UNIT

    @property
    def left(self) -> float:
        """What may be spent yet."""
        return max(self._limit - self.spent, 0.0)

    @property
    def is_spent(self) -> bool:
        """True if nothing is left, or the caller wants what there is."""
        return self.spent >= self._limit or is_stopped()
