"""How many pods make a gang whole, where the pods themselves say it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from contracts.gang import MAX_MEMBERS
from contracts.names import GANG_SIZE
from contracts.pods.membership import KUEUE, LWS, Membership, WorkloadAPI
from contracts.workload import Pod

_DECLARED_IN = {
    WorkloadAPI.KUEUE: f"{KUEUE}pod-group-total-count",
    WorkloadAPI.LEADER_WORKER_SET: f"{LWS}size",
}
"""Annotations of pods whose API puts the size there."""


class UnknownSize(Struct, frozen=True, kw_only=True):
    """Why it cannot be said how many pods make a gang whole."""

    reason: str
    """One word for their author, such as `GangSizeMissing`."""
    message: str


def read_declared_size(
    pods: Sequence[Pod], membership: Membership
) -> int | UnknownSize | None:
    """Return how many pods make the gang of these whole; None: an object says it.

    Our annotation wins over what an API says.
    """
    name = GANG_SIZE
    if membership.api is not None and not any(_list_sizes(pods, name)):
        if membership.owner is not None:
            return None
        name = _DECLARED_IN[membership.api]
    sizes = set(_list_sizes(pods, name))
    if len(sizes) > 1:
        values = ", ".join(sorted(size or "none" for size in sizes))
        return UnknownSize(
            reason="GangSizeInvalid",
            message=f"the pods disagree on the annotation {name}: {values[:200]}",
        )
    (size,) = sizes
    if not size:
        lacking = f"the pods have no annotation {name}"
        if membership.api is None:
            lacking = f"there is no Gang object {membership.group!r}, and {lacking}"
        return UnknownSize(reason="GangSizeMissing", message=lacking)
    digits = size.isascii() and size.isdecimal() and len(size) <= len(str(MAX_MEMBERS))
    if not digits or not 1 <= int(size) <= MAX_MEMBERS:
        return UnknownSize(
            reason="GangSizeInvalid",
            message=f"annotation {name}: {size[:40]!r} is not a number from 1 to "
            f"{MAX_MEMBERS}",
        )
    return int(size)


def _list_sizes(pods: Sequence[Pod], name: str) -> list[str]:
    return [pod.metadata.annotations.get(name, "") for pod in pods]
