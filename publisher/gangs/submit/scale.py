"""Compares the size that pods declare with the number of pods that their maker makes.

Whoever scales a workload changes the one and not the other. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from contracts.gang import MAX_MEMBERS
from contracts.names import GANG_SIZE
from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import OwnerKey
from contracts.workload import Pod
from publisher.gangs.context import PlanContext
from publisher.gangs.view import is_over

_MAKERS = ("", "CronJob")
"""Controllers of a maker that make no further pods of the same gang."""
_HASH = "pod-template-hash"
"""Label of the pods of a Deployment; their ReplicaSet's name ends with its value."""


class SizeMismatch(Struct, frozen=True, kw_only=True):
    """A gang whose maker makes more or fewer pods than its pods declare."""

    message: str
    is_short: bool
    """True if the maker makes fewer: the gang is never whole."""


def find_mismatch(pods: Sequence[Pod], context: PlanContext) -> SizeMismatch | None:
    """Compare the size of a gang with what makes all of its pods; `pods` are of it.

    None: they agree, a Gang object says the size, or the pods have no or several
    makers that are known.
    """
    declared = pods[0].metadata.annotations.get(GANG_SIZE, "")
    is_number = declared.isdecimal() and len(declared) <= len(str(MAX_MEMBERS))
    if context.gang is not None or not is_number:
        return None
    maker = _find_only_maker(context)
    scale = None if maker is None else maker.scale
    if maker is None or scale is None or int(declared) == scale.count:
        return None
    return SizeMismatch(
        message=f"annotation {GANG_SIZE} says {declared}, {maker.key.kind} "
        f"{maker.key.name} has {scale.field} {scale.count}",
        is_short=scale.count < int(declared),
    )


def _find_only_maker(context: PlanContext) -> GangOwner | None:
    """Return the object that makes all pods of a group; None: there is none."""
    keys = {_name_maker(pod) for pod in context.pods if not is_over(pod)}
    key, uid = keys.pop() if len(keys) == 1 else (None, "")
    maker = None if key is None else context.view.owners.find(key, uid)
    is_top = maker is not None and maker.controller.kind in _MAKERS
    return maker if is_top else None


def _name_maker(pod: Pod) -> tuple[OwnerKey, str]:
    """Return what is scaled to change the number of pods like this, and its uid.

    A Deployment's uid is not known: its pods name its ReplicaSet.
    """
    meta = pod.metadata
    owner = meta.controller
    if owner.kind == "ReplicaSet" and _HASH in meta.labels:
        name = owner.name.removesuffix(f"-{meta.labels[_HASH]}")
        return OwnerKey("Deployment", meta.namespace, name), ""
    return OwnerKey(owner.kind, meta.namespace, owner.name), owner.uid
