"""Which gang a pod belongs to, as which member, and how many pods make it whole.

The one place that reads it, for the publisher and for plans alike. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from contracts.gang import MAX_MEMBERS
from contracts.names import GANG, GANG_SIZE, MEMBER
from contracts.workload import Pod


class Membership(Struct, frozen=True, kw_only=True):
    """Which gang a pod belongs to, and as what."""

    namespace: str
    group: str
    """Name of the gang; of a lone pod its own."""
    is_lone: bool = False
    """Whether it is a gang by itself."""
    member: str = ""
    """Its role, such as `worker`; empty: nothing says one."""


class UnknownSize(Struct, frozen=True, kw_only=True):
    """Why it cannot be said how many pods make a gang whole."""

    reason: str
    """One word for their author, such as `GangSizeMissing`."""
    message: str


def read_membership(pod: Pod) -> Membership:
    """Say which gang a pod belongs to: that of its label, else one of its own."""
    meta = pod.metadata
    gang = meta.labels.get(GANG, "")
    return Membership(
        namespace=meta.namespace,
        group=gang or meta.name,
        is_lone=not gang,
        member=meta.labels.get(MEMBER, ""),
    )


def read_declared_size(pods: Sequence[Pod]) -> int | UnknownSize:
    """Return how many pods make the gang of these whole, as their annotation says."""
    sizes = {pod.metadata.annotations.get(GANG_SIZE, "") for pod in pods}
    if len(sizes) > 1:
        values = ", ".join(sorted(size or "none" for size in sizes))
        return UnknownSize(
            reason="GangSizeInvalid",
            message=f"the pods disagree on the annotation {GANG_SIZE}: {values}",
        )
    (size,) = sizes
    if not size:
        name = read_membership(pods[0]).group
        return UnknownSize(
            reason="GangSizeMissing",
            message=f"there is no Gang object {name!r}, and the pods have no "
            f"annotation {GANG_SIZE}",
        )
    digits = size.isascii() and size.isdecimal() and len(size) <= len(str(MAX_MEMBERS))
    if not digits or not 1 <= int(size) <= MAX_MEMBERS:
        return UnknownSize(
            reason="GangSizeInvalid",
            message=f"annotation {GANG_SIZE}: {size[:40]!r} is no number from 1 to "
            f"{MAX_MEMBERS}",
        )
    return int(size)
