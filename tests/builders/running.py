"""Pods that run, as the API server writes them, with claims made for them."""

from __future__ import annotations

from typing import Any

from tests.builders.values import DEVICE_CLASS, DRIVER, NAMESPACE


def list_running(name: str, node: str, *devices: str) -> list[dict[str, Any]]:
    """Write a template, the claim made by it that holds devices, and its pod."""
    exactly = {"deviceClassName": DEVICE_CLASS, "count": len(devices)}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    made, template = f"{name}-gpu-x", f"gpus-{len(devices)}"
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
        for device in devices
    ]
    user = {"resource": "pods", "name": name, "uid": name}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": template, "namespace": NAMESPACE},
            "spec": {"spec": spec},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": made, "namespace": NAMESPACE},
            "spec": spec,
            "status": {
                "allocation": {"devices": {"results": results}},
                "reservedFor": [user],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": name},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main"}],
                "resourceClaims": [
                    {"name": "gpu", "resourceClaimTemplateName": template}
                ],
            },
            "status": {
                "phase": "Running",
                "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": made}],
            },
        },
    ]
