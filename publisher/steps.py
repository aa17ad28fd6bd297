"""What a plan asks of a sink: create, update or delete one object each.

The sink may be a folder or an API server; a plan says only what should come next, on
the object as it was observed (uid and resourceVersion travel inside it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from msgspec import Struct

from contracts.claim import ResourceClaim
from contracts.device import ResourceSlice

Published = ResourceClaim | ResourceSlice
"""What this service writes."""


class ObjectKey(Struct, frozen=True, order=True):
    """An object's identity in its sink."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.name) if part)


class Create(Struct, frozen=True):
    """Make an object that was not there."""

    object: Published


class Update(Struct, frozen=True):
    """Replace an object that was there."""

    object: Published


class Delete(Struct, frozen=True):
    """Remove this object, as it was observed."""

    object: Published


Step = Create | Update | Delete


def key_of(item: Published) -> ObjectKey:
    """Give an object's identity."""
    metadata = item.metadata
    return ObjectKey(type(item).__name__, metadata.namespace, metadata.name)


def after(
    observed: Mapping[ObjectKey, Published], steps: Iterable[Step]
) -> dict[ObjectKey, Published]:
    """Say what is there once all steps are carried out."""
    result = dict(observed)
    for step in steps:
        match step:
            case Create() | Update():
                result[key_of(step.object)] = step.object
            case Delete():
                result.pop(key_of(step.object), None)
            case _:
                assert_never(step)
    return result
