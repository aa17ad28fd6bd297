"""Queues, flavors and topologies of Kueue as JSON, and Jobs that ask for quota."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.lab.controlplane.client import Json, named

KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE = "kueue.x-k8s.io/queue-name"
GATED_BY = "kueue.x-k8s.io/admission-gated-by"
FLAVOR = "cloud.example.com/flavor"
RACK = "cloud.example.com/rack"
HOSTNAME = "kubernetes.io/hostname"
DEVICES = "example.com/devices"
"""The resource that stands for device classes in quotas."""


def configuration(*device_classes: str) -> Json:
    """Let devices of these classes count as one resource."""
    mapping = {"name": DEVICES, "deviceClassNames": list(device_classes)}
    return {"resources": {"deviceClassMappings": [mapping]}}


def flavor(name: str, labels: Mapping[str, str], **spec: Any) -> Json:
    """Make a flavor: nodes with these labels."""
    made = named(KUEUE, "ResourceFlavor", name)
    return made | {"spec": {"nodeLabels": dict(labels), **spec}}


def topology(name: str, *levels: str) -> Json:
    """Make a topology of node labels, the widest first."""
    made = named(KUEUE, "Topology", name)
    return made | {"spec": {"levels": [{"nodeLabel": level} for level in levels]}}


def cluster_queue(
    name: str,
    quotas: Mapping[str, Mapping[str, int]],
    *checks: str,
    **spec: Any,
) -> Json:
    """Make a queue with quotas by flavor and resource, and checks for all flavors.

    Flavors with quotas of the same resources are alternatives.
    """
    groups: dict[tuple[str, ...], list[Json]] = {}
    for each, quota in quotas.items():
        amounts = [{"name": name, "nominalQuota": quota[name]} for name in quota]
        groups.setdefault(tuple(quota), []).append({"name": each, "resources": amounts})
    asked = {"admissionChecks": [{"name": check} for check in checks]}
    return named(KUEUE, "ClusterQueue", name) | {
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {"coveredResources": list(covered), "flavors": flavors}
                for covered, flavors in groups.items()
            ],
            **({"admissionChecksStrategy": asked} if checks else {}),
            **spec,
        }
    }


def local_queue(namespace: str, name: str, cluster_queue: str) -> Json:
    """Make a queue of a namespace."""
    made = named(KUEUE, "LocalQueue", name, namespace)
    return made | {"spec": {"clusterQueue": cluster_queue}}


def check(name: str, controller: str) -> Json:
    """Make a check that a controller answers."""
    made = named(KUEUE, "AdmissionCheck", name)
    return made | {"spec": {"controllerName": controller}}


def is_true(resource: Json, condition: str) -> bool:
    """Tell whether a condition holds."""
    conditions: Sequence[Json] = (resource.get("status") or {}).get("conditions") or ()
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)


def evictions(workload: Json) -> int:
    """Count how often a Workload lost its quota."""
    stats = (workload.get("status") or {}).get("schedulingStats") or {}
    return sum(entry["count"] for entry in stats.get("evictions") or ())
