"""Which solver leads, as the fence says it (subject `fence`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from contracts.ids import DriverName
from contracts.messages import ClusterMessage

MAX_EPOCH = 2**53 - 1
"""A larger number is not the same in every reader of JSON."""
MAX_LEASE_S = 300
SILENT_S = 30.0
"""Silence beyond its lease after which a solver no longer counts as leader."""


class EpochClaimed(ClusterMessage, frozen=True, kw_only=True):
    """The solver that leads, and until when (subject `fence`)."""

    epoch: Annotated[int, Meta(ge=1, le=MAX_EPOCH)]
    holder: str
    lease_s: Annotated[float, Meta(ge=0, le=MAX_LEASE_S)]
    agent_drivers: tuple[DriverName, ...] = ()
    """Drivers whose pools it takes of node agents; empty: any."""


class SolverSeen(Struct, frozen=True, kw_only=True):
    """The solver that claimed the epoch last, and when nats-server stored that."""

    claim: EpochClaimed
    at_s: float
    """Seconds since the epoch."""

    def is_silent(self, now_s: float) -> bool:
        """True if its lease ran out and nobody took over."""
        return now_s - self.at_s > self.claim.lease_s + SILENT_S
