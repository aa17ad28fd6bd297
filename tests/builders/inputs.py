"""Objects as people and clusters write them, for plans and lint to read."""

from __future__ import annotations

from typing import Any

from contracts.codec import to_builtins
from contracts.kubernetes.decode import WritableObject, decode_object, to_kubernetes
from contracts.names import GANG, GANG_SIZE, GATE
from moorings.plan.objects import PlanObject
from tests.builders.values import NAMESPACE

Json = dict[str, Any]
GATED: Json = {"schedulingGates": [{"name": GATE}]}
TRAIN: Json = {
    "apiVersion": "moorings.dev/v1alpha1",
    "kind": "Gang",
    "metadata": {"name": "train", "namespace": "team-a"},
    "spec": {
        "members": [
            {
                "name": "worker",
                "count": 2,
                "claims": [
                    {
                        "name": "gpus",
                        "spec": {
                            "devices": {
                                "requests": [
                                    {
                                        "name": "gpu",
                                        "exactly": {
                                            "deviceClassName": "gpu.moorings.dev",
                                            "count": 4,
                                        },
                                    }
                                ]
                            }
                        },
                    }
                ],
            }
        ]
    },
}
"""A Gang of two workers with four simulated GPUs each."""


def named(name: str) -> Json:
    """Return the gang under another name."""
    return {**TRAIN, "metadata": {**TRAIN["metadata"], "name": name}}


def entry(raw: Json) -> PlanObject:
    """Read an object as a plan does."""
    return PlanObject.of("x", raw, decode_object(raw))


def entries(*values: WritableObject | Json) -> list[PlanObject]:
    """Read objects, ours and written ones."""
    return [
        entry(value if isinstance(value, dict) else to_builtins(to_kubernetes(value)))
        for value in values
    ]


def pod_spec(
    *, template: str = "", claim: str = "", cpu: int | str = 0, **spec: Any
) -> Json:
    """Write a pod's spec with a claim `gpu`, by template or by name, or with none."""
    claims = []
    if template:
        claims.append({"name": "gpu", "resourceClaimTemplateName": template})
    if claim:
        claims.append({"name": "gpu", "resourceClaimName": claim})
    container: Json = {"name": "main"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    return {"containers": [container], "resourceClaims": claims, **spec}


def gang_meta(gang: str, size: int | None = None) -> Json:
    """Write the labels and annotations of a gang's pods."""
    meta: Json = {"labels": {GANG: gang}} if gang else {}
    if size is not None:
        meta["annotations"] = {GANG_SIZE: str(size)}
    return meta


def written_pod(
    name: str,
    *,
    gang: str = "",
    size: int | None = None,
    live: bool = False,
    phase: str = "Pending",
    metadata: Json | None = None,
    generated: Json | None = None,
    **spec: Any,
) -> Json:
    """Write a pod; `live`: as a cluster has it, with `generated` claims by name."""
    meta: Json = {"name": name, "namespace": NAMESPACE, **gang_meta(gang, size)}
    status: Json = {"phase": phase}
    if live:
        meta |= {
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "creationTimestamp": "2026-11-20T12:00:00Z",
        }
    if generated:
        status["resourceClaimStatuses"] = [
            {"name": claim, "resourceClaimName": made}
            for claim, made in generated.items()
        ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, **(metadata or {})},
        "spec": pod_spec(**spec),
        "status": status,
    }


def written_job(
    name: str, count: int, *, gang: str = "", size: int | None = None, **spec: Any
) -> Json:
    """Write a Job of so many pods at a time."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "parallelism": count,
            "completions": count,
            "template": {"metadata": gang_meta(gang, size), "spec": pod_spec(**spec)},
        },
    }


def written_node(name: str, cpu: int = 8) -> Json:
    """Write a node that is ready."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": {"cpu": str(cpu), "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def generated_claim(claim: Json, pod: str, name: str = "gpu") -> Json:
    """Let a claim be generated for a pod of the cluster, as its metadata says."""
    note = {"resource.kubernetes.io/pod-claim-name": name}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod,
        "uid": f"uid-{pod}",
        "controller": True,
    }
    metadata = {**claim["metadata"], "annotations": note, "ownerReferences": [owner]}
    return {**claim, "metadata": metadata}
