"""The manifests of k8s/ as they lie there, for tests that need no cluster."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

K8S = Path(__file__).parents[2] / "k8s"
BASE = K8S / "base"
OVERLAYS = K8S / "overlays"
KUSTOMIZATION = "kustomization.yaml"

Manifest = dict[str, Any]


@cache
def base() -> tuple[Manifest, ...]:
    """Read every object of k8s/base, one a file."""
    paths = sorted(BASE.glob("*-*.yaml"))
    return tuple(yaml.safe_load(path.read_text()) for path in paths)


WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")
OWNERSHIP = "ownership"


def workloads() -> dict[str, Manifest]:
    """Give what runs pods, by name."""
    workload_objects = (
        resource for resource in base() if resource["kind"] in WORKLOADS
    )
    return {resource["metadata"]["name"]: resource for resource in workload_objects}


def environment(workload: str, **fields: str) -> dict[str, str]:
    """Give the variables of a workload's container, ConfigMaps read.

    `fields` are those of its pod, such as `metadata_name`; Secrets stay out.
    """
    pod = workloads()[workload]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    maps = {
        resource["metadata"]["name"]: resource["data"]
        for resource in base()
        if resource["kind"] == "ConfigMap"
    }
    variables: dict[str, str] = {}
    for entry in container["env"]:
        match entry:
            case {"value": value}:
                variables[entry["name"]] = value
            case {"valueFrom": {"fieldRef": {"fieldPath": path}}}:
                variables[entry["name"]] = fields[path.replace(".", "_")]
            case {"valueFrom": {"configMapKeyRef": {"name": name, "key": key}}}:
                variables[entry["name"]] = maps[name][key]
            case _:
                pass
    return variables
