"""Names and identities, each with a type of its own so that none is mistaken.

A bare `str` never crosses a function boundary where one of these is meant. The
module knows nothing of the objects that the names belong to.
"""

from __future__ import annotations

from typing import NewType

from msgspec import Struct

ClusterName = NewType("ClusterName", str)
Namespace = NewType("Namespace", str)
NodeName = NewType("NodeName", str)
DriverName = NewType("DriverName", str)
PoolName = NewType("PoolName", str)
"""Unique inside its driver only."""
DeviceName = NewType("DeviceName", str)
"""Unique inside its pool only."""
DeviceClassName = NewType("DeviceClassName", str)
GangUID = NewType("GangUID", str)
ClaimUID = NewType("ClaimUID", str)
SolveID = NewType("SolveID", str)
QualifiedName = NewType("QualifiedName", str)
"""`identifier` (of the driver's own domain) or `domain/identifier`."""
FullyQualifiedName = NewType("FullyQualifiedName", str)
"""Always `domain/identifier`."""


class PoolID(Struct, frozen=True, order=True, gc=False):
    """A pool: two drivers may use one pool name."""

    driver: DriverName
    pool: PoolName

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(Struct, frozen=True, order=True, gc=False):
    """A device, unique in the cluster (DRA: driver, pool, device)."""

    driver: DriverName
    pool: PoolName
    device: DeviceName

    @property
    def pool_id(self) -> PoolID:
        """The pool that the device is in."""
        return PoolID(self.driver, self.pool)

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class GangKey(Struct, frozen=True, order=True, gc=False):
    """A gang, unique in the cluster: two namespaces may use one uid."""

    namespace: Namespace
    uid: GangUID

    def __str__(self) -> str:
        return f"{self.namespace}/{self.uid}"


class ClaimRef(Struct, frozen=True, order=True, gc=False):
    """A ResourceClaim by name, and by uid once it has one (else empty)."""

    namespace: Namespace
    name: str
    uid: ClaimUID = ClaimUID("")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def object_key(namespace: str, name: str) -> str:
    """Name an object of a namespace; none means `default`, as kubectl has it."""
    return f"{namespace or 'default'}/{name}"
