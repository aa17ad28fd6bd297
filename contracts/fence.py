"""Which solver leads, as the fence says it (subject `fence`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from contracts.messages import ClusterMessage

MAX_EPOCH = 2**53 - 1
"""A larger number is not the same in every reader of JSON."""
MAX_LEASE_S = 300


class EpochClaimed(ClusterMessage, frozen=True, kw_only=True):
    """The solver that leads, and until when (subject `fence`)."""

    epoch: Annotated[int, Meta(ge=1, le=MAX_EPOCH)]
    holder: str
    lease_s: Annotated[float, Meta(ge=0, le=MAX_LEASE_S)]
