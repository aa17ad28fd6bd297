"""What a plan asks of a sink: create, update or delete one object each.

The sink may be a folder or an API server; a plan says only what should come next, on
the object as it was observed (uid and resourceVersion travel inside it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar, assert_never

from msgspec import Struct

from contracts.claim import ResourceClaim
from contracts.device import DeviceTaintRule, ResourceSlice

Published = ResourceClaim | ResourceSlice
"""What every sink takes; an API server takes DeviceTaintRules, too."""

T = TypeVar("T", bound=ResourceClaim | ResourceSlice | DeviceTaintRule)
T_co = TypeVar(
    "T_co", bound=ResourceClaim | ResourceSlice | DeviceTaintRule, covariant=True
)


class ObjectKey(Struct, frozen=True, order=True):
    """An object's identity in its sink."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.name) if part)


class Create(Struct, Generic[T_co], frozen=True):
    """Make an object that was not there."""

    object: T_co


class Update(Struct, Generic[T_co], frozen=True):
    """Replace an object that was there."""

    object: T_co


class Delete(Struct, Generic[T_co], frozen=True):
    """Remove this object, as it was observed."""

    object: T_co


Step = Create[T_co] | Update[T_co] | Delete[T_co]


def key_of(obj: ResourceClaim | ResourceSlice | DeviceTaintRule) -> ObjectKey:
    """Return an object's identity."""
    metadata = obj.metadata
    return ObjectKey(type(obj).__name__, metadata.namespace, metadata.name)


def apply_steps(
    observed: Mapping[ObjectKey, T], steps: Iterable[Step[T]]
) -> dict[ObjectKey, T]:
    """Return what is there once all steps are carried out."""
    objects = dict(observed)
    for step in steps:
        match step:
            case Create() | Update():
                objects[key_of(step.object)] = step.object
            case Delete():
                objects.pop(key_of(step.object), None)
            case _:
                assert_never(step)
    return objects
