"""The manifests of k8s/ as they lie there, for tests that need no cluster."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

K8S = Path(__file__).parents[2] / "k8s"
BASE = K8S / "base"
OVERLAYS = K8S / "overlays"
SIMULATED = OVERLAYS / "simulated"
"""What owns the devices that our own agents simulate; most tests install this one."""
OWNERSHIP = K8S / "components" / "ownership"
TOKENS = K8S / "components" / "tokens"
CRD = K8S / "crd" / "gangs-customresourcedefinition.yaml"
KUSTOMIZATION = "kustomization.yaml"
OUR_IMAGE = "registry.example.com/moorings:1.2.3"
"""What tests write into a site."""
WITHOUT_KUBELET = {
    "NODEAGENT_SOURCES": "",
    "NODEAGENT_KUBELET_FOLDER": "",
    "NODEAGENT_LIVENESS_ADDRESS": "",
}
"""What an agent of a fleet needs instead of what the DaemonSet gives it."""

Manifest = dict[str, Any]


def base() -> tuple[Manifest, ...]:
    """Give every object of k8s/base, one a file; yours to change."""
    return copy.deepcopy(_read_base())


@cache
def _read_base() -> tuple[Manifest, ...]:
    paths = sorted(BASE.glob("*-*.yaml"))
    return tuple(yaml.safe_load(path.read_text()) for path in paths)


WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")


def workloads() -> dict[str, Manifest]:
    """Give what runs pods, by name."""
    workload_objects = (
        resource for resource in base() if resource["kind"] in WORKLOADS
    )
    return {resource["metadata"]["name"]: resource for resource in workload_objects}


def owned(folder: Path) -> dict[str, str]:
    """Read the drivers and classes that a kustomization says are ours."""
    kustomization = yaml.safe_load((folder / KUSTOMIZATION).read_text())
    (said,) = (
        entry
        for entry in kustomization["configMapGenerator"]
        if entry["name"] == "ownership"
    )
    lines = [*said.get("literals", ())]
    for name in said.get("envs", ()):
        text = (folder / name).read_text()
        lines += [line for line in text.splitlines() if not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def environment(
    workload: str, ownership: Path = SIMULATED, /, **fields: str
) -> dict[str, str]:
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
    maps["ownership"] = owned(ownership)
    variables: dict[str, str] = {}
    for entry in container["env"]:
        match entry:
            case {"value": value}:
                variables[entry["name"]] = value
            case {"valueFrom": {"fieldRef": {"fieldPath": path}}}:
                variables[entry["name"]] = fields[path.replace(".", "_")]
            case {"valueFrom": {"configMapKeyRef": {"name": name, "key": key} as ref}}:
                if name in maps or not ref.get("optional"):
                    variables[entry["name"]] = maps[name][key]
            case _:
                pass
    return variables


def agent_variables() -> list[dict[str, str]]:
    """List the variables that a node agent has where it shows a token."""
    patch = yaml.safe_load((TOKENS / "nodeagent-patch.yaml").read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    return [entry for entry in container["env"] if "value" in entry]


def write_image(site: Path) -> None:
    """Write an image into k8s/site, or a copy of it, as its first line demands."""
    path = site / KUSTOMIZATION
    text = re.sub(r"^- write-your-image.*\n", "", path.read_text(), flags=re.MULTILINE)
    name, _, tag = OUR_IMAGE.partition(":")
    text = text.replace("newName: REGISTRY/moorings", f"newName: {name}")
    path.write_text(text.replace("newTag: TAG", f'newTag: "{tag}"'))


def write_site(folder: Path, resources: Path, ownership: Mapping[str, str]) -> Path:
    """Write a site's kustomization over others, as docs/install.md says."""
    folder.mkdir()

    def near(path: Path) -> str:
        return os.path.relpath(path, folder)

    said = {"name": "ownership", "namespace": "moorings-system", "behavior": "replace"}
    literals = [f"{name}={text}" for name, text in ownership.items()]
    kustomization = {
        "resources": [near(resources)],
        "configMapGenerator": [{**said, "literals": literals}],
        "components": [near(OWNERSHIP)],
    }
    (folder / KUSTOMIZATION).write_text(yaml.safe_dump(kustomization))
    return folder
