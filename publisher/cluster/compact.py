"""An object of the API server -> what the bus carries of it, or nothing.

Keeps what an allocator decides by and drops the rest, so that heartbeats, managed
fields and status of others cause no message; whatever version the cluster serves, the
bus carries v1. Pure; knows no bus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contracts.kubernetes.decode import V1
from contracts.kubernetes.versions import to_v1
from contracts.names import GANG, GANG_UID, GATE
from contracts.pods.node_affinity import read_pinned_node
from publisher.gangs.view import ENDED

Json = dict[str, Any]
_CONTAINER = ("name", "resources", "restartPolicy")
_NODE_STATUS = ("allocatable", "declaredFeatures")
_WHOLE = ("ResourceSlice", "DeviceClass", "DeviceTaintRule", "ResourceClaimTemplate")
"""Kinds of which the spec is what matters."""
_WHOLE_METADATA = ("name", "namespace", "creationTimestamp")
"""Of two classes for one extended resource the newer one counts."""


def compact(raw: Mapping[str, Any]) -> Json | None:
    """Leave out what nobody decides by; None: nothing of it matters.

    A pod matters while it uses a node: from when it is bound, or our gate opened and
    pinned it. A claim matters while it holds devices.

    Raises:
        DecodeError: a pod's affinity is not of the shape that it has.
    """
    match raw["kind"]:
        case "Node":
            return _node(raw)
        case "Pod":
            return _pod(raw)
        case "ResourceClaim":
            return _claim(_as_v1(raw))
        case kind if kind in _WHOLE:
            found = _as_v1(raw)
            metadata = _picked(found["metadata"], _WHOLE_METADATA)
            return _object(found, metadata, found["spec"])
        case _:
            return None


def _as_v1(raw: Mapping[str, Any]) -> Json:
    version = raw["apiVersion"].rpartition("/")[2]
    return to_v1(raw["kind"], version, dict(raw), []) | {"apiVersion": V1}


def _node(raw: Mapping[str, Any]) -> Json:
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    ready = [
        {"type": "Ready", "status": item["status"]}
        for item in status.get("conditions") or ()
        if item["type"] == "Ready"
    ]
    taints = [
        _picked(taint, ("key", "value", "effect")) for taint in spec.get("taints") or ()
    ]
    found: Json = {"taints": taints} if taints else {}
    if spec.get("unschedulable"):
        found["unschedulable"] = True
    metadata = _picked(raw["metadata"], ("name", "labels"))
    told = _picked(status, _NODE_STATUS) | ({"conditions": ready} if ready else {})
    return _object(raw, metadata, found) | {"status": told}


def _pod(raw: Mapping[str, Any]) -> Json | None:
    metadata, spec = raw["metadata"], raw["spec"]
    phase = (raw.get("status") or {}).get("phase", "")
    node = _node_of(metadata, spec)
    if not node or phase in ENDED:
        return None
    kept = _picked(metadata, ("name", "namespace"))
    for field, key in (("labels", GANG), ("annotations", GANG_UID)):
        value = (metadata.get(field) or {}).get(key)
        if value is not None:
            kept[field] = {key: value}
    used = _picked(spec, ("overhead", "resources")) | {
        name: _containers(spec[name])
        for name in ("containers", "initContainers")
        if spec.get(name)
    }
    return _object(raw, kept, {"nodeName": node, **used})


def _node_of(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Give the node that a pod is on, or that we pinned it to."""
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    opened = GANG_UID in (metadata.get("annotations") or {})
    gates = (gate["name"] for gate in spec.get("schedulingGates") or ())
    if not opened or GATE in gates:
        return ""
    return read_pinned_node(spec.get("affinity") or {}) or ""


def _containers(containers: Sequence[Mapping[str, Any]]) -> list[Json]:
    found = []
    for item in containers:
        kept = _picked(item, _CONTAINER)
        if "resources" in kept:
            kept["resources"] = _picked(kept["resources"], ("requests", "limits"))
        found.append(kept)
    return found


def _claim(raw: Mapping[str, Any]) -> Json | None:
    allocation = (raw.get("status") or {}).get("allocation")
    if not allocation:
        return None
    metadata = _picked(raw["metadata"], ("name", "namespace", "uid"))
    return _object(raw, metadata) | {"status": {"allocation": allocation}}


def _object(
    raw: Mapping[str, Any],
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any] | None = None,
) -> Json:
    found: Json = {
        "apiVersion": raw["apiVersion"],
        "kind": raw["kind"],
        "metadata": dict(metadata),
    }
    return found if spec is None else found | {"spec": dict(spec)}


def _picked(raw: Mapping[str, Any], names: Sequence[str]) -> Json:
    return {name: raw[name] for name in names if raw.get(name)}
