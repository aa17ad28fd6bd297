"""Differences between what runs on a node and what was decided (subject `drift`).

Only for people: nobody decides by it. The whole of a node in one message, so that what
is over is told by its absence.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from contracts.ids import DeviceID
from contracts.messages import NodeMessage

MAX_DRIFTS = 1024
"""Of a node in one message."""


class DriftKind(StrEnum):
    """How what runs differs from what was decided."""

    NOT_ALLOCATED = "InUseNotAllocated"
    """A container holds a device that its claim was not given, or has no claim."""
    NOT_PREPARED = "InUseNotPrepared"
    """A container holds a device that no record of the agent prepared."""
    CLAIM_GONE = "PreparedClaimGone"
    """A prepared device belongs to a claim that is gone, freed or replaced."""
    NEVER_PREPARED = "AllocatedNotPrepared"
    """A pod that kubelet starts waits for a device which is not prepared."""
    DRIVER_GONE = "PreparedDriverGone"
    """A prepared device is of a driver that the agent's sources no longer name."""


class DeviceDrift(Struct, frozen=True, kw_only=True, rename="camel"):
    """One device that differs."""

    kind: DriftKind
    device: DeviceID
    claim: str
    """`namespace/name`."""
    pod: str = ""
    """`namespace/name`; empty: no pod is concerned."""
    since: str = ""
    """RFC 3339."""


class DriftFound(NodeMessage, frozen=True, kw_only=True):
    """All devices of a node that differ now (subject `drift`)."""

    devices: Annotated[tuple[DeviceDrift, ...], Meta(max_length=MAX_DRIFTS)] = ()
