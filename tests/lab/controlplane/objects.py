"""Kubernetes objects as JSON: valid by default, a test names what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.lab.controlplane.client import Json

RESOURCE = "resource.k8s.io/v1"
GATE = "moorings.dev/gang"


def node(name: str, labels: Mapping[str, str] = {}, **allocatable: str) -> Json:
    """Make a node that is ready from the start."""
    has = {"cpu": "64", "memory": "256Gi", "pods": "1000", **allocatable}
    hostname = {"kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**hostname, **labels}},
        "status": {
            "capacity": has,
            "allocatable": has,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            ],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.10"}],
        },
    }


def pod(
    namespace: str,
    name: str,
    *,
    claims: Mapping[str, str] = {},
    templates: Mapping[str, str] = {},
    gated: bool = False,
    node_selector: Mapping[str, str] = {},
    labels: Mapping[str, str] = {},
    annotations: Mapping[str, str] = {},
    requests: Mapping[str, str] = {},
    **spec: Any,
) -> Json:
    """Make a pod with claims or claim templates by the pod's own names for them."""
    meta = {"labels": dict(labels), "annotations": dict(annotations)}
    entries = [{"name": n, "resourceClaimName": c} for n, c in claims.items()]
    entries += [
        {"name": n, "resourceClaimTemplateName": t} for n, t in templates.items()
    ]
    container = {
        "name": "main",
        "image": "registry.invalid/none",
        "resources": {
            "requests": dict(requests),
            "claims": [{"name": entry["name"]} for entry in entries],
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, **meta},
        "spec": {
            "containers": [container],
            "restartPolicy": "Never",
            "nodeSelector": dict(node_selector),
            "resourceClaims": entries,
            **({"schedulingGates": [{"name": GATE}]} if gated else {}),
            **spec,
        },
    }


def requests(device_class: str, count: int = 1, **more: Any) -> Json:
    """Make the spec of a claim with one request."""
    exactly = {"deviceClassName": device_class, "count": count, **more}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


def claim(namespace: str, name: str, spec: Json) -> Json:
    """Make a claim."""
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaim",
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec,
    }


def template(namespace: str, name: str, spec: Json) -> Json:
    """Make a claim template."""
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaimTemplate",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"spec": spec},
    }


def device_class(name: str, driver: str) -> Json:
    """Make a class of all devices of a driver."""
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return {
        "apiVersion": RESOURCE,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector]},
    }


def resource_slice(driver: str, node_name: str, devices: Sequence[Json]) -> Json:
    """Make the one slice of a node's pool."""
    (made,) = pool(driver, node_name, {"nodeName": node_name, "devices": list(devices)})
    made["metadata"]["name"] = f"{node_name}-{driver}"
    return made


def pool(driver: str, name: str, *specs: Mapping[str, Any]) -> list[Json]:
    """Make the slices of a pool from what they say besides their pool and driver."""
    return [
        {
            "apiVersion": RESOURCE,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-{driver}-{number}"},
            "spec": {
                "driver": driver,
                "pool": {
                    "name": name,
                    "generation": 1,
                    "resourceSliceCount": len(specs),
                },
                **spec,
            },
        }
        for number, spec in enumerate(specs)
    ]


def taint_rule(name: str, driver: str, effect: str) -> Json:
    """Make a rule that taints all devices of a driver."""
    return {
        "apiVersion": RESOURCE,
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {
            "deviceSelector": {"driver": driver},
            "taint": {"key": "example.com/owned", "effect": effect},
        },
    }


def devices(count: int) -> list[Json]:
    """Make equal devices."""
    return [{"name": f"dev-{number}"} for number in range(count)]
