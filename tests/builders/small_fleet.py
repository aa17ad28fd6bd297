"""Two nodes of eight GPUs and gangs for them, as people write them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def node_slice(name: str, gpus: int = 8) -> Json:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(gpus)]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": name,
            "pool": pool,
            "devices": devices,
        },
    }


def device_class() -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {
            "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]
        },
    }


def written_gang(name: str, pods: int, gpus: int) -> Json:
    exactly = {"deviceClassName": "gpu", "count": gpus}
    requests = [{"name": "gpu", "exactly": exactly}]
    claim = {"name": "gpus", "spec": {"devices": {"requests": requests}}}
    member = {"name": "worker", "count": pods, "claims": [claim]}
    return {
        "apiVersion": "moorings.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": name},
        "spec": {"members": [member]},
    }


FLEET = [node_slice("gpu-1"), node_slice("gpu-2"), device_class()]
