"""Placements: the node and devices of each pod, as engines answer."""

from __future__ import annotations

from msgspec import Struct

from contracts.ids import DeviceID, NodeName


class PodPlacement(Struct, frozen=True):
    """Where one pod goes, and the devices of each of its requests."""

    node: NodeName
    devices: tuple[tuple[DeviceID, ...], ...]
    """By request, claim after claim."""
    alternatives: tuple[int, ...]
    """The alternative that was chosen for each request."""


class GangPlacement(Struct, frozen=True):
    """Where the pods of one gang go."""

    gang: int
    """Index into `Demand.gangs`."""
    members: tuple[tuple[PodPlacement, ...], ...]
    """By member, by index."""
