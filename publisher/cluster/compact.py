"""An object of the API server -> what the bus carries of it, or nothing.

Keeps what an allocator decides by and drops the rest, so that heartbeats, managed
fields and status of others cause no message; whatever version the cluster serves, the
bus carries v1. Pure; knows no bus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contracts.errors import DecodeError
from contracts.kubernetes.decode import V1
from contracts.kubernetes.versions import to_v1
from contracts.names import CHECKPOINTED, GANG_UID, GATE, OURS
from contracts.pods.node_affinity import REQUIRED, read_pinned_node
from contracts.release import RELEASE
from publisher.gangs.view import ENDED
from runtime.kube.kinds import QUEUE_KINDS
from runtime.kube.lenient import ALTERED

Json = dict[str, Any]
_CONTAINER = ("name", "resources", "restartPolicy")
_PORT = ("hostPort", "hostIP", "protocol")
_NODE_STATUS = ("allocatable", "declaredFeatures")
_WHOLE = ("ResourceSlice", "DeviceClass", "DeviceTaintRule", "ResourceClaimTemplate")
"""Kinds of which the spec is what matters."""
_QUEUES = tuple(kind.name for kind in QUEUE_KINDS)
_WHOLE_METADATA = ("name", "namespace", "creationTimestamp")
"""Of two classes for one extended resource the newer one counts."""


IsDecided = Callable[[Mapping[str, Any], str], bool]
"""Tells whether it was decided that a pod which is not bound yet goes to a node."""


def compact(
    raw: Mapping[str, Any], is_decided: IsDecided = lambda _pod, _node: False
) -> Json | None:
    """Keep only what allocators decide by; None: nothing of the object matters.

    A pod matters while it uses a node: from when it is bound or nominated, or our gate
    opened and pinned it to where it was decided to be. A claim matters while it holds
    devices.

    Raises:
        DecodeError: a pod's affinity is not of the shape that it has, or what matters
            of an object is not as it is served.
    """
    match raw["kind"]:
        case "Node":
            return _compact_node(raw)
        case "Pod":
            return _compact_pod(raw, is_decided)
        case "Namespace":
            # Queues choose namespaces by their labels.
            return _build_object(raw, _pick_fields(raw["metadata"], ("name", "labels")))
        case kind if kind == RELEASE:
            return dict(raw)
        case "ResourceClaim":
            return _compact_claim(_to_v1(raw))
        case kind if kind in _WHOLE and ALTERED in raw:
            raise DecodeError(kind, "$", raw[ALTERED])
        case kind if kind in _WHOLE:
            converted = _to_v1(raw)
            metadata = _pick_fields(converted["metadata"], _WHOLE_METADATA)
            return _build_object(converted, metadata, converted["spec"])
        case kind if kind in _QUEUES:
            return _compact_queue(raw)
        case _:
            return None


def _to_v1(raw: Mapping[str, Any]) -> Json:
    version = raw["apiVersion"].rpartition("/")[2]
    return to_v1(raw["kind"], version, dict(raw), []) | {"apiVersion": V1}


def _compact_node(raw: Mapping[str, Any]) -> Json:
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    ready = [
        {"type": "Ready", "status": condition["status"]}
        for condition in status.get("conditions") or ()
        if condition["type"] == "Ready"
    ]
    taints = [
        _pick_fields(taint, ("key", "value", "effect"))
        for taint in spec.get("taints") or ()
    ]
    kept_spec: Json = {"taints": taints} if taints else {}
    if spec.get("unschedulable"):
        kept_spec["unschedulable"] = True
    metadata = _pick_fields(raw["metadata"], ("name", "labels"))
    kept_status = _pick_fields(status, _NODE_STATUS) | (
        {"conditions": ready} if ready else {}
    )
    return _build_object(raw, metadata, kept_spec) | {"status": kept_status}


def _compact_queue(raw: Mapping[str, Any]) -> Json:
    metadata = _pick_fields(raw["metadata"], ("name", "namespace"))
    said = raw["metadata"].get("annotations") or {}
    ours = {key: said[key] for key in sorted(said) if key.startswith(OURS)}
    if ours:
        metadata["annotations"] = ours
    return _build_object(raw, metadata, raw.get("spec") or {})


def _compact_pod(raw: Mapping[str, Any], is_decided: IsDecided) -> Json | None:
    metadata, spec = raw["metadata"], raw["spec"]
    status = raw.get("status") or {}
    node = str(spec.get("nodeName") or "")
    pinned = "" if node else pinned_node_of(raw)
    if status.get("phase", "") in ENDED:
        return None
    if not node and not spec.get("schedulingGates"):
        # kube-scheduler preempts others there for it, or is about to bind it.
        node = str(status.get("nominatedNodeName") or "")
    if pinned and is_decided(raw, pinned):
        node = pinned
    if not node:
        return None
    # Others' rules are about its labels, and about whether it is going.
    kept = _pick_fields(metadata, ("name", "namespace", "labels", "deletionTimestamp"))
    said = metadata.get("annotations") or {}
    ours = {name: said[name] for name in (GANG_UID, CHECKPOINTED) if name in said}
    if GANG_UID in ours:
        kept["annotations"] = ours
    used = _pick_fields(spec, ("overhead", "resources")) | {
        name: _compact_containers(spec[name])
        for name in ("containers", "initContainers")
        if spec.get(name)
    }
    apart = ((spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(REQUIRED)
    if apart:
        used["affinity"] = {"podAntiAffinity": {REQUIRED: apart}}
    return _build_object(raw, kept, {"nodeName": node, **used})


def pinned_node_of(raw: Mapping[str, Any]) -> str:
    """Return the node that we pinned a pod to, as the pod says; empty: none.

    It is on no node yet, and no gate of ours holds it back.

    Raises:
        DecodeError: its affinity is not of the shape that it has.
    """
    spec = raw["spec"]
    annotations = raw["metadata"].get("annotations") or {}
    gates = (gate.get("name") for gate in spec.get("schedulingGates") or ())
    if spec.get("nodeName") or GANG_UID not in annotations or GATE in gates:
        return ""
    return read_pinned_node(spec.get("affinity") or {}) or ""


def _compact_containers(containers: Sequence[Mapping[str, Any]]) -> list[Json]:
    compacted = []
    for container in containers:
        kept = _pick_fields(container, _CONTAINER)
        if "resources" in kept:
            kept["resources"] = _pick_fields(kept["resources"], ("requests", "limits"))
        ports = [port for port in container.get("ports") or () if port.get("hostPort")]
        if ports:
            kept["ports"] = [_pick_fields(port, _PORT) for port in ports]
        compacted.append(kept)
    return compacted


def _compact_claim(raw: Mapping[str, Any]) -> Json | None:
    allocation = (raw.get("status") or {}).get("allocation")
    if not allocation:
        return None
    metadata = _pick_fields(raw["metadata"], ("name", "namespace", "uid"))
    # For people: whose claim it is.
    pods = [
        _pick_fields(owner, ("kind", "name"))
        for owner in raw["metadata"].get("ownerReferences") or ()
        if owner.get("kind") == "Pod"
    ]
    if pods:
        metadata["ownerReferences"] = pods
    return _build_object(raw, metadata) | {"status": {"allocation": allocation}}


def _build_object(
    raw: Mapping[str, Any],
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any] | None = None,
) -> Json:
    body: Json = {
        "apiVersion": raw["apiVersion"],
        "kind": raw["kind"],
        "metadata": dict(metadata),
    }
    return body if spec is None else body | {"spec": dict(spec)}


def _pick_fields(raw: Mapping[str, Any], names: Sequence[str]) -> Json:
    return {name: raw[name] for name in names if raw.get(name)}
