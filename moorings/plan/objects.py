"""The objects of an input, each once: what is given twice counts as it would apply.

A cluster's export and a manifest may name the same object. Pods and claims stay as the
cluster has them, because their specs never change; of anything else the later one is
taken, with what only the cluster writes kept from the earlier. Slices of one name and
of different pools stay two: they are of two clusters. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, structs

from contracts.claim import ResourceClaim, ResourceClaimTemplate
from contracts.device import ResourceSlice
from contracts.gang import Gang
from contracts.ids import object_key
from contracts.kubernetes.decode import Decoded, decode_object
from contracts.storage import PersistentVolumeClaim
from contracts.workload import Pod, Workload

NAMESPACED = (
    Gang,
    PersistentVolumeClaim,
    Pod,
    ResourceClaim,
    ResourceClaimTemplate,
    Workload,
)
_OF_SERVER = ("uid", "resourceVersion", "creationTimestamp", "ownerReferences")
"""Metadata that an author does not write."""
_NAMED = 3
"""So many objects are named in a note."""


class PlanObject(Struct, frozen=True, kw_only=True):
    """An object of the input, and where it came from."""

    source: str
    raw: dict[str, Any]
    decoded: Decoded


def unite_objects(entries: Iterable[PlanObject]) -> tuple[list[PlanObject], list[str]]:
    """Return each object once, and notes about those that came more than once."""
    united: dict[tuple[str, ...], PlanObject] = {}
    twice: dict[str, str] = {}
    for number, entry in enumerate(entries):
        named = _with_name(entry, number)
        key = _key_of(named) if named.decoded.value.metadata.name else (str(number),)
        before = united.get(key)
        if before is None:
            united[key] = named
            continue
        united[key] = _unite(before, named)
        twice.setdefault(f"{key[0]} {key[1]}", before.source)
    return list(united.values()), list(_describe(twice))


def _with_name(entry: PlanObject, number: int) -> PlanObject:
    """Name what the API server would: `generateName` and something of its own."""
    metadata = entry.decoded.value.metadata
    if metadata.name or not metadata.generate_name:
        return entry
    name = f"{metadata.generate_name}{number:05d}"
    return _decode(entry, {**entry.raw["metadata"], "name": name}, entry.raw)


def _key_of(entry: PlanObject) -> tuple[str, ...]:
    value = entry.decoded.value
    name = value.metadata.name
    if isinstance(value, NAMESPACED):
        name = object_key(value.metadata.namespace, name)
    group = str(entry.raw.get("apiVersion", "")).rpartition("/")[0]
    key = (entry.decoded.kind, name, group)
    if isinstance(value, ResourceSlice):
        return (*key, value.spec.driver, value.spec.pool.name)
    return key


def _unite(before: PlanObject, after: PlanObject) -> PlanObject:
    old, new = before.decoded.value.metadata, after.decoded.value.metadata
    if old.resource_version and new.resource_version:
        return after if new.version_number >= old.version_number else before
    if new.resource_version:
        before, after = after, before
    if isinstance(after.decoded.value, Pod | ResourceClaim):
        return before if old.resource_version or new.resource_version else after
    metadata = {
        key: value for key, value in before.raw["metadata"].items() if key in _OF_SERVER
    }
    metadata |= after.raw["metadata"]
    status = {"status": before.raw["status"]} if "status" in before.raw else {}
    return _decode(after, metadata, {**status, **after.raw})


def _decode(
    entry: PlanObject, metadata: dict[str, Any], raw: dict[str, Any]
) -> PlanObject:
    raw = {**raw, "metadata": metadata}
    return structs.replace(entry, raw=raw, decoded=decode_object(raw))


def _describe(twice: dict[str, str]) -> Iterator[str]:
    if not twice:
        return
    names = ", ".join(list(twice)[:_NAMED])
    more = f" and {len(twice) - _NAMED} more" if len(twice) > _NAMED else ""
    yield (
        f"{names}{more}: in the input more than once; counted once, a pod or claim as "
        "the cluster has it, anything else as it is written last"
    )
