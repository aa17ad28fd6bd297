"""An object of the API server -> what the bus carries of it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts.node_affinity import NODE_AFFINITY, REQUIRED
from publisher.cluster.view import ENDED

_METADATA = ("name", "namespace", "uid", "labels", "annotations")


def compact(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Leave out what nobody decides by; None: nothing of it matters."""
    metadata = {
        name: raw["metadata"][name] for name in _METADATA if name in raw["metadata"]
    }
    found = {**raw, "metadata": metadata}
    match raw["kind"]:
        case "ResourceClaim" if not raw.get("status", {}).get("allocation"):
            return None
        case "Pod":
            node = _node(raw["spec"])
            if not node or raw["status"].get("phase") in ENDED:
                return None
            found["spec"] = {**raw["spec"], "nodeName": node}
        case _:
            pass
    return found


def _node(spec: Mapping[str, Any]) -> str:
    """Give the node that a pod is on, or is pinned to behind no gate."""
    if spec.get("nodeName") or spec.get("schedulingGates"):
        return str(spec.get("nodeName", ""))
    affinity = spec.get("affinity", {}).get(NODE_AFFINITY, {})
    for term in affinity.get(REQUIRED, {}).get("nodeSelectorTerms", ()):
        for field in term.get("matchFields", ()):
            return str(field["values"][0])
    return ""
