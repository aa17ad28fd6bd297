"""What kustomize makes of k8s/."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.kubectl import Kubectl
from tests.manifests import BASE, KUSTOMIZATION, Manifest, base

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
    """The ConfigMap says what the policies already say."""
    built = {
        (thing["kind"], thing["metadata"]["name"]): thing
        for thing in _build(control_plane_programs, BASE)
    }
    written = {(thing["kind"], thing["metadata"]["name"]): thing for thing in base()}

    assert built == written
