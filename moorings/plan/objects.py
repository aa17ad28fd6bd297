"""The objects of an input, each once: what is given twice counts as it would apply.

A cluster's export and a manifest may name the same object. Pods and claims stay as the
cluster has them, because their specs never change; of anything else the later one is
taken, with what only the cluster writes kept from the earlier. Slices of one name and
of different pools stay two: they are of two clusters. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, structs

from contracts.claim import ResourceClaim, ResourceClaimTemplate
from contracts.device import ResourceSlice
from contracts.gang import Gang
from contracts.ids import object_key
from contracts.kubernetes.claim_specs import change_claim_specs
from contracts.kubernetes.decode import Decoded, decode_object
from contracts.kubernetes.defaults import default_claim_spec
from contracts.kueue import LocalQueue
from contracts.storage import PersistentVolume, PersistentVolumeClaim
from contracts.workload import Node, Pod, ResourceQuota, Workload

NAMESPACED = (
    Gang,
    LocalQueue,
    PersistentVolumeClaim,
    Pod,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceQuota,
    Workload,
)
_OF_SERVER = ("uid", "resource_version", "creation_timestamp", "owner_references")
"""Metadata that an author does not write."""
_WRITTEN = ("uid", "resourceVersion", "creationTimestamp", "ownerReferences")
"""The same as it is written."""
_WITH_STATUS = (Node, PersistentVolume, PersistentVolumeClaim, ResourceQuota)
_NAMED = 3
"""So many objects are named in a note."""


class PlanObject(Struct, frozen=True, kw_only=True):
    """An object of the input, and where it came from."""

    source: str
    decoded: Decoded
    raw: dict[str, Any] = {}
    """As it is written, of a Workload; of others all that counts is decoded."""

    @classmethod
    def of(cls, source: str, raw: Mapping[str, Any], decoded: Decoded) -> PlanObject:
        """Keep what is needed of an object: a large cluster has very many."""
        written = dict(raw) if isinstance(decoded.value, Workload) else {}
        return cls(source=source, decoded=decoded, raw=written)


def with_defaults(entry: PlanObject) -> PlanObject:
    """Fill in the API server's defaults."""
    value = entry.decoded.value
    if not isinstance(value, ResourceClaim | ResourceClaimTemplate | Gang):
        return entry
    value = change_claim_specs(value, default_claim_spec)
    return structs.replace(entry, decoded=structs.replace(entry.decoded, value=value))


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
        united[key] = _unite_copies(before, named)
        twice.setdefault(f"{key[0]} {key[1]}", before.source)
    return list(united.values()), list(_describe_twice(twice))


def _with_name(entry: PlanObject, number: int) -> PlanObject:
    """Name what the API server would: `generateName` and something of its own."""
    metadata = entry.decoded.value.metadata
    if metadata.name or not metadata.generate_name:
        return entry
    name = f"{metadata.generate_name}{number:05d}"
    if entry.raw:
        return _decode_entry(entry, {**entry.raw["metadata"], "name": name}, entry.raw)
    return _with_value(entry, metadata=structs.replace(metadata, name=name))


def _key_of(entry: PlanObject) -> tuple[str, ...]:
    value = entry.decoded.value
    name = value.metadata.name
    if isinstance(value, NAMESPACED):
        name = object_key(value.metadata.namespace, name)
    api_version = value.api_version if isinstance(value, Workload) else ""
    key = (entry.decoded.kind, name, api_version.rpartition("/")[0])
    if isinstance(value, ResourceSlice):
        return (*key, value.spec.driver, value.spec.pool.name)
    return key


def _unite_copies(before: PlanObject, after: PlanObject) -> PlanObject:
    old, new = before.decoded.value.metadata, after.decoded.value.metadata
    if old.resource_version and new.resource_version:
        return after if new.version_number >= old.version_number else before
    if new.resource_version:
        before, after = after, before
        old, new = new, old
    if isinstance(after.decoded.value, Pod | ResourceClaim):
        return before if old.resource_version else after
    if after.raw:
        return _unite_written(before, after)
    kept = {name: getattr(old, name) for name in _OF_SERVER if not getattr(new, name)}
    changes: dict[str, Any] = {"metadata": structs.replace(new, **kept)}
    if isinstance(after.decoded.value, _WITH_STATUS):
        status = after.decoded.value.status
        if status == type(status)():
            changes["status"] = getattr(before.decoded.value, "status", status)
    return _with_value(after, **changes)


def _unite_written(before: PlanObject, after: PlanObject) -> PlanObject:
    metadata = {
        key: value for key, value in before.raw["metadata"].items() if key in _WRITTEN
    }
    metadata |= after.raw["metadata"]
    status = {"status": before.raw["status"]} if "status" in before.raw else {}
    return _decode_entry(after, metadata, {**status, **after.raw})


def _decode_entry(
    entry: PlanObject, metadata: dict[str, Any], raw: dict[str, Any]
) -> PlanObject:
    raw = {**raw, "metadata": metadata}
    return structs.replace(entry, raw=raw, decoded=decode_object(raw))


def _with_value(entry: PlanObject, **changes: Any) -> PlanObject:
    value = structs.replace(entry.decoded.value, **changes)
    return structs.replace(entry, decoded=structs.replace(entry.decoded, value=value))


def _describe_twice(twice: dict[str, str]) -> Iterator[str]:
    if not twice:
        return
    names = ", ".join(list(twice)[:_NAMED])
    more = f" and {len(twice) - _NAMED} more" if len(twice) > _NAMED else ""
    yield (
        f"{names}{more}: more than once in the input; a pod or claim counts as "
        "the cluster has it, anything else as in its last copy"
    )
