"""What kustomize makes of k8s/."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from tests.lab.controlplane.client import Kube, named
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.manifests import BASE, KUSTOMIZATION, Manifest, base, workloads

OWNERSHIP = BASE.parent / "components" / "ownership"


def _build(program: Path, folder: Path) -> list[Manifest]:
    kubectl = Kubectl(program / "kubectl", Path(os.devnull))
    return list(yaml.safe_load_all(kubectl("kustomize", str(folder))))


def _write(folder: Path, **fields: Any) -> Path:
    folder.mkdir()
    (folder / KUSTOMIZATION).write_text(yaml.safe_dump(fields))
    return folder


def test_ownership_is_said_in_one_place(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """Of the classes and drivers of k8s/base nothing is left but in the roles."""
    data = {"drivers": "a.example.com", "classes": "big.example.com,small"}
    changed = {"kind": "ConfigMap", "metadata": {"name": "ownership"}, "data": data}
    near = os.path.relpath(BASE, tmp_path / "changed")
    _write(
        tmp_path / "changed",
        resources=[near],
        patches=[{"target": {"name": "ownership"}, "patch": yaml.safe_dump(changed)}],
    )
    component = os.path.relpath(OWNERSHIP, tmp_path / "whole")
    whole = _write(tmp_path / "whole", resources=["../changed"], components=[component])

    built = _build(control_plane_programs, whole)
    policies = [
        yaml.safe_dump(thing, width=10_000)
        for thing in built
        if thing["kind"].endswith("AdmissionPolicy")
    ]
    assert [policy for policy in policies if ",nic.moorings.dev" in policy] == []
    assert sum("big.example.com,small" in policy for policy in policies) == 4
    assert sum("''a.example.com''.split" in policy for policy in policies) == 1


def test_base_is_built_as_it_is_written(control_plane_programs: Path) -> None:
    """The ConfigMap says what the policies already say; one more holds NATS' files."""
    built = {
        (thing["kind"], thing["metadata"]["name"]): thing
        for thing in _build(control_plane_programs, BASE)
    }
    (generated,) = [
        name for kind, name in built if kind == "ConfigMap" and name.startswith("nats-")
    ]
    files = built.pop(("ConfigMap", generated))["data"]
    nats = built["StatefulSet", "nats"]["spec"]["template"]["spec"]
    for volume in nats["volumes"]:
        if volume.get("configMap") == {"name": generated}:
            volume["configMap"] = {"name": "nats"}
    written = {(thing["kind"], thing["metadata"]["name"]): thing for thing in base()}

    assert built == written
    for name, text in files.items():
        assert text == (BASE / "nats" / name).read_text()


async def test_pods_of_base_fit_their_namespace(admin: Kube) -> None:
    """It enforces the restricted standard of Pod Security."""
    space = await admin.get(named("v1", "Namespace", "moorings-system"))
    labels = space["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"

    for name, workload in workloads().items():
        pod = named("v1", "Pod", f"{name}-0", "moorings-system")
        pod["spec"] = dict(workload["spec"]["template"]["spec"])
        for claimed in workload["spec"].get("volumeClaimTemplates", []):
            volume = {"name": claimed["metadata"]["name"], "emptyDir": {}}
            pod["spec"]["volumes"] = [*pod["spec"]["volumes"], volume]
        await admin.create(pod, dryRun="All", fieldValidation="Strict")
