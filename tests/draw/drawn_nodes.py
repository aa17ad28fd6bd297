"""What nodes have, keep away and lack, and what pods ask of them, drawn at random.

Few values, so that much is equal, and amounts near to each other, so that some pods
fit and others do not.
"""

from __future__ import annotations

import random
from typing import Any

from contracts.gang import MemberNode, NodeToleration
from contracts.ids import NodeName
from contracts.pods.node_features import RESTART_ALL
from contracts.quantity import Quantity

NODES = ("node-1", "node-2")
_TAINTS = (
    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
    {"key": "gpu", "value": "yes", "effect": "NoExecute"},
    {"key": "spare", "effect": "NoSchedule"},
    {"key": "soft", "effect": "PreferNoSchedule"},
)
_TOLERATIONS = (
    NodeToleration(operator="Exists"),
    NodeToleration(key="gpu", operator="Exists"),
    NodeToleration(key="gpu", value="yes"),
    NodeToleration(key="gpu", value="yes", effect="NoSchedule"),
    NodeToleration(key="spare"),
    NodeToleration(key="node.kubernetes.io/unschedulable", operator="Exists"),
)
_SELECTORS: tuple[dict[str, Any], ...] = (
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["west"]}]},
    {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["west"]}]},
    {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "rank", "operator": "Gt", "values": ["4"]}]},
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]},
    {
        "matchFields": [
            {"key": "metadata.name", "operator": "NotIn", "values": ["node-2"]}
        ]
    },
    {},
)


def with_fit(raw: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Let a Node say what it has and keeps away, most of the time."""
    raw = {**raw, "status": dict(raw.get("status") or {}), "spec": {}}
    if draw.random() < 0.7:
        raw["status"]["allocatable"] = {
            "cpu": draw.choice(("2", "3500m", "4", "8")),
            "memory": draw.choice(("3Gi", "4Gi", "16Gi")),
            "pods": str(draw.choice((1, 2, 3, 110))),
        }
        if draw.random() < 0.2:
            del raw["status"]["allocatable"]["pods"]
        if draw.random() < 0.3:
            raw["status"]["allocatable"]["example.com/slot"] = "1"
    if draw.random() < 0.2:
        raw["spec"]["taints"] = draw.sample(_TAINTS, draw.choice((1, 2)))
    if draw.random() < 0.08:
        raw["spec"]["unschedulable"] = True
    if draw.random() < 0.5:
        declared = raw["status"].get("declaredFeatures") or []
        raw["status"]["declaredFeatures"] = [*declared, RESTART_ALL]
    return raw


def bound_pod(number: int, draw: random.Random) -> dict[str, Any]:
    """Make a pod of others that runs on a node, or is over."""
    asked = {"cpu": draw.choice(("500m", "1")), "memory": "1Gi"}
    container = {"name": "main", "resources": {"requests": asked}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"other-{number}", "namespace": "default"},
        "spec": {"nodeName": draw.choice(NODES), "containers": [container]},
        "status": {"phase": draw.choice(("Running", "Running", "Succeeded"))},
    }


def asked_of_nodes(draw: random.Random) -> MemberNode:
    """Ask a few things of the node."""
    resources: dict[str, Quantity] = {}
    if draw.random() < 0.6:
        resources["cpu"] = Quantity.parse(draw.choice(("500m", "1", "1500m", "2")))
    if draw.random() < 0.4:
        resources["memory"] = Quantity.parse(draw.choice(("1Gi", "1500Mi", "3Gi")))
    if draw.random() < 0.05:
        resources["example.com/slot"] = Quantity.of(1)
    tolerations = draw.sample(_TOLERATIONS, draw.choice((0, 1, 2)))
    affinity: dict[str, Any] = {}
    if draw.random() < 0.25:
        terms = draw.sample(_SELECTORS, draw.choice((1, 2)))
        required = {"nodeSelectorTerms": terms}
        affinity["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": required
        }
    return MemberNode(
        node_name=NodeName("node-2" if draw.random() < 0.05 else ""),
        resources=resources,
        node_selector={"zone": draw.choice(("west", "east"))}
        if draw.random() < 0.1
        else {},
        tolerations=tuple(tolerations) if draw.random() < 0.5 else (),
        affinity=affinity,
        features=(RESTART_ALL,) if draw.random() < 0.1 else (),
    )
