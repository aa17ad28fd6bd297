"""Kubernetes JSON <-> our Structs, in every served version.

Decoding keeps what was written, valid or not, so that everything downstream sees one
shape: `validate` says what the API server would refuse and `defaults` what it would
fill in. Takes parsed JSON: where it came from is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from contracts import names
from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.codec import to_builtins
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.errors import DecodeError, UnknownKindError
from contracts.gang import Gang
from contracts.kubernetes import versions
from contracts.kubernetes.nearest import explain_unknown
from contracts.kueue import (
    ClusterQueue,
    Cohort,
    Configuration,
    LocalQueue,
    QueueObject,
    ResourceFlavor,
    WorkloadPriorityClass,
)
from contracts.pods.templates import read_workload
from contracts.shapes import read
from contracts.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from contracts.workload import Namespace, Node, Pod, ResourceQuota, Workload

KubernetesObject = (
    ResourceSlice
    | ResourceClaim
    | ResourceClaimTemplate
    | DeviceClass
    | DeviceTaintRule
    | Gang
    | Node
    | Namespace
    | ResourceQuota
    | PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | Pod
    | Workload
    | QueueObject
)
WritableObject = (
    ResourceSlice
    | ResourceClaim
    | ResourceClaimTemplate
    | DeviceClass
    | DeviceTaintRule
    | Gang
)

RESOURCE_GROUP = "resource.k8s.io"
V1 = f"{RESOURCE_GROUP}/v1"
V1BETA2 = f"{RESOURCE_GROUP}/v1beta2"
V1BETA1 = f"{RESOURCE_GROUP}/v1beta1"
V1ALPHA3 = f"{RESOURCE_GROUP}/v1alpha3"

_RESOURCE_TYPES: tuple[type[KubernetesObject], ...] = (
    ResourceSlice,
    ResourceClaim,
    ResourceClaimTemplate,
    DeviceClass,
)
_QUEUE_TYPES: tuple[type[KubernetesObject], ...] = (
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    WorkloadPriorityClass,
)
TYPES: dict[tuple[str, str], type[KubernetesObject]] = {
    **{
        (f"kueue.x-k8s.io/{version}", kind.__name__): kind
        for version in ("v1beta2", "v1beta1")
        for kind in _QUEUE_TYPES
    },
    **{
        (f"config.kueue.x-k8s.io/{version}", "Configuration"): Configuration
        for version in ("v1beta2", "v1beta1")
    },
    **{
        (version, kind.__name__): kind
        for version in (V1, V1BETA2, V1BETA1)
        for kind in _RESOURCE_TYPES
    },
    (V1, "DeviceTaintRule"): DeviceTaintRule,
    (V1BETA2, "DeviceTaintRule"): DeviceTaintRule,
    (V1ALPHA3, "DeviceTaintRule"): DeviceTaintRule,
    (names.API_VERSION, "Gang"): Gang,
    ("v1", "Node"): Node,
    ("v1", "Namespace"): Namespace,
    ("v1", "ResourceQuota"): ResourceQuota,
    ("v1", "Pod"): Pod,
    ("v1", "PersistentVolumeClaim"): PersistentVolumeClaim,
    ("v1", "PersistentVolume"): PersistentVolume,
    ("storage.k8s.io/v1", "StorageClass"): StorageClass,
}
NAME_OUTSIDE = "belongs under metadata"
_ROOT_FIELDS = frozenset({"apiVersion", "kind", "status"})
"""Fields of every object that need not be modelled."""


class Decoded(Struct, frozen=True, kw_only=True):
    """An object, and what in it we do not know."""

    kind: str
    value: KubernetesObject
    unknown: tuple[str, ...] = ()
    """Paths of fields that the kind does not have, as the author wrote them."""


def decode_object(raw: Any) -> Decoded:
    """Read one object (parsed JSON) of any version and kind that we know.

    Kinds of others that we do not know are read as a Workload if they hold pod
    templates.

    Raises:
        UnknownKindError: neither the kind nor its shape is known.
        DecodeError: a value is not of the type that its field has.
    """
    if not isinstance(raw, Mapping):
        raise DecodeError("object", "$", f"Expected `object`, got {_type_of(raw)}")
    api_version, kind = _text_of(raw, "apiVersion"), _text_of(raw, "kind")
    name = _name_of(raw)
    what = " ".join(part for part in (kind or "object", name) if part)
    struct = TYPES.get((api_version, kind))
    unknown: list[str] = []
    if struct is None:
        explained = explain_unknown(api_version, kind, TYPES)
        workload = None if explained else read_workload(raw, what, unknown)
        if workload is None:
            raise UnknownKindError(api_version, kind, name, explained)
        return Decoded(kind=kind, value=workload, unknown=tuple(unknown))
    version = api_version.rpartition("/")[2]
    if "metadata" not in raw and "name" in raw:
        raise DecodeError(what, "name", NAME_OUTSIDE)
    misplaced: list[str] = []
    try:
        converted = versions.to_v1(kind, version, dict(raw), misplaced)
        value = read(converted, struct, what, unknown, ignored=_ROOT_FIELDS)
    except DecodeError as error:
        field = versions.to_written_path(kind, version, error.field.removeprefix("$."))
        raise DecodeError(what, field, error.reason) from error
    paths = (versions.to_written_path(kind, version, path) for path in unknown)
    return Decoded(kind=kind, value=value, unknown=(*misplaced, *paths))


def find_refused_fields(decoded: Decoded) -> tuple[str, ...]:
    """Return the unknown fields for which the API server would refuse an object.

    Of objects of DRA and our own, where a field left out may decide otherwise. Those
    that a cluster has passed it: it is of a release with fields that we do not know.
    """
    value = decoded.value
    if not decoded.unknown or value.metadata.resource_version:
        return ()
    return decoded.unknown if isinstance(value, WritableObject) else ()


def is_list(raw: Any) -> bool:
    """True if the kind of an object is a list."""
    kind = _text_of(raw, "kind") if isinstance(raw, Mapping) else ""
    return kind.endswith("List") and "spec" not in raw


def flatten(raw: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list, or the object itself.

    Items of a typed list (`ResourceClaimList`) get its version and kind, which the API
    server leaves out of them.

    Raises:
        DecodeError: a list's items are no list of objects.
    """
    if not is_list(raw):
        yield raw
        return
    kind = _text_of(raw, "kind")
    items = raw.get("items")
    if not isinstance(items, list | tuple | None):
        raise DecodeError(kind, "items", f"Expected `array`, got {_type_of(items)}")
    yield from flatten_items(raw, items or ())


def flatten_items(raw: Mapping[str, Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yield the objects of a list whose items come from elsewhere, one at a time.

    What is decoded already goes through.

    Raises:
        DecodeError: an item is no object.
    """
    kind, inherited = _text_of(raw, "kind"), inherited_kind(raw)
    for index, listed in enumerate(items):
        if isinstance(listed, Decoded):
            yield listed
            continue
        if not isinstance(listed, Mapping):
            path = f"items[{index}]"
            raise DecodeError(kind, path, f"Expected `object`, got {_type_of(listed)}")
        yield from flatten({**inherited, **listed})


def inherited_kind(raw: Mapping[str, Any]) -> dict[str, str]:
    """Return version and kind of a list's items that do not say them; may be none."""
    kind = _text_of(raw, "kind")
    if kind == "List":
        return {}
    version = _text_of(raw, "apiVersion")
    return {"apiVersion": version, "kind": kind.removesuffix("List")}


def to_kubernetes(value: WritableObject, api_version: str = V1) -> dict[str, Any]:
    """Write an object as the API server takes it.

    `api_version` is of the DRA kinds; a Gang has its own.

    Raises:
        UnknownKindError: that version does not have the kind.
    """
    kind = type(value).__name__
    if isinstance(value, Gang):
        api_version = names.API_VERSION
    if (api_version, kind) not in TYPES:
        raise UnknownKindError(api_version, kind, value.metadata.name)
    body: dict[str, Any] = to_builtins(value)
    body.setdefault("spec", {})
    if isinstance(value, ResourceSlice):
        pool = value.spec.pool
        body["spec"]["pool"] |= {
            "generation": pool.generation,
            "resourceSliceCount": pool.resource_slice_count,
        }
    body = versions.from_v1(kind, api_version.rpartition("/")[2], body)
    return {**body, "apiVersion": api_version, "kind": kind}


def _text_of(raw: Mapping[str, Any], key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def _name_of(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    parts = (_text_of(metadata, "namespace"), _text_of(metadata, "name"))
    return "/".join(part for part in parts if part)


def _type_of(value: Any) -> str:
    return f"`{type(value).__name__}`"
