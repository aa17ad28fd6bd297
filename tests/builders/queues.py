"""Queues of Kueue for tests, as YAML would have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts.ids import ClusterName
from contracts.messages import ObjectObserved
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders.problems import CLUSTER

API = "kueue.x-k8s.io/v1beta2"
Quota = tuple[int, int | None, int | None]
"""Nominal quota, borrowing limit, lending limit."""
Quotas = Mapping[str, Mapping[str, Quota | int]]
"""By flavor and resource."""


def groups(quotas: Quotas) -> list[dict[str, Any]]:
    """Write quotas as one resource group."""
    if not quotas:
        return []
    covered = sorted({resource for each in quotas.values() for resource in each})
    flavors = []
    for flavor, amounts in quotas.items():
        resources = []
        for name, amount in amounts.items():
            nominal, borrow, lend = (
                (amount, None, None) if isinstance(amount, int) else amount
            )
            limits = {"borrowingLimit": borrow, "lendingLimit": lend}
            said = {key: value for key, value in limits.items() if value is not None}
            resources.append({"name": name, "nominalQuota": nominal, **said})
        flavors.append({"name": flavor, "resources": resources})
    return [{"coveredResources": covered, "flavors": flavors}]


def cluster_queue(
    name: str, quotas: Quotas, *, cohort: str = "", weight: str = "", **spec: Any
) -> dict[str, Any]:
    """Write a ClusterQueue for all namespaces."""
    said: dict[str, Any] = {"resourceGroups": groups(quotas), "namespaceSelector": {}}
    if cohort:
        said["cohortName"] = cohort
    if weight:
        said["fairSharing"] = {"weight": weight}
    return {
        "apiVersion": API,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {**said, **spec},
    }


def cohort(
    name: str, quotas: Quotas, *, parent: str = "", weight: str = ""
) -> dict[str, Any]:
    """Write a Cohort."""
    spec: dict[str, Any] = {"resourceGroups": groups(quotas)}
    if parent:
        spec["parentName"] = parent
    if weight:
        spec["fairSharing"] = {"weight": weight}
    return {
        "apiVersion": API,
        "kind": "Cohort",
        "metadata": {"name": name},
        "spec": spec,
    }


def local_queue(namespace: str, queue: str, name: str = "default") -> dict[str, Any]:
    """Write a LocalQueue."""
    return {
        "apiVersion": API,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterQueue": queue},
    }


def flavor(name: str, **spec: Any) -> dict[str, Any]:
    """Write a ResourceFlavor."""
    metadata = {"name": name}
    return {
        "apiVersion": API,
        "kind": "ResourceFlavor",
        "metadata": metadata,
        "spec": spec,
    }


def observed(raw: dict[str, Any], cluster: ClusterName = CLUSTER) -> ObjectObserved:
    """Say that an object is there."""
    meta = raw["metadata"]
    key = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
    return ObjectObserved(cluster=cluster, kind=raw["kind"], key=key, object=raw)


def with_queues(snapshot: Snapshot, *objects: dict[str, Any]) -> Snapshot:
    """Believe in these objects."""
    for raw in objects:
        snapshot = apply(snapshot, observed(raw))
    return snapshot
