"""Running pods of a gang, beside which more of its pods are submitted.

They only restrict what is decided: nothing is given to them, and what they have need
not be free.
"""

from __future__ import annotations

from msgspec import Struct

from contracts.gang import MAX_MEMBERS
from contracts.gang_rules import (
    MAX_CONSTRAINTS,
    MAX_TOPOLOGY,
    GangConstraint,
    GangTopology,
)
from contracts.ids import DeviceID, NodeName

MAX_JOINED_DEVICES = 4096
"""Devices of all pods that are joined."""


class JoinedDevice(Struct, frozen=True, kw_only=True, rename="camel"):
    """A device that a pod has."""

    claim: str
    """As the pod calls it."""
    request: str
    """As results name it: `request` or `request/subrequest`."""
    device: DeviceID


class JoinedPod(Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that stays where it is."""

    member: str
    name: str
    uid: str
    node: NodeName
    devices: tuple[JoinedDevice, ...] = ()
    """Devices of the claims that rules are about."""


class JoinedGang(Struct, frozen=True, kw_only=True, rename="camel"):
    """The running pods of a gang that its rules must hold for, too."""

    pods: tuple[JoinedPod, ...]
    constraints: tuple[GangConstraint, ...] = ()
    """In place of the gang's: those name devices of these pods, too."""
    topology: tuple[GangTopology, ...] = ()

    def __post_init__(self) -> None:
        for field, count, most in (
            ("pods", len(self.pods), MAX_MEMBERS),
            ("pods[].devices", self.count_devices(), MAX_JOINED_DEVICES),
            ("constraints", len(self.constraints), MAX_CONSTRAINTS),
            ("topology", len(self.topology), MAX_TOPOLOGY),
        ):
            if count > most:
                raise ValueError(f"joins.{field}: {count}, more than {most}")

    def count_devices(self) -> int:
        """Count the devices of all pods."""
        return sum(len(pod.devices) for pod in self.pods)
