"""Where pods go, before it is written as allocations: what engines answer with."""

from __future__ import annotations

from msgspec import Struct

from contracts.ids import DeviceID, NodeName


class Place(Struct, frozen=True):
    """Where one pod goes, and the devices of each of its requests."""

    node: NodeName
    devices: tuple[tuple[DeviceID, ...], ...]
    """By request, claim after claim."""
    alternatives: tuple[int, ...]
    """The alternative that was chosen for each request."""


class Placed(Struct, frozen=True):
    """The places of a gang's pods."""

    gang: int
    """Index into `Demand.gangs`."""
    members: tuple[tuple[Place, ...], ...]
    """By member, by index."""
