"""k8s/base is one object a file, under the object's name, and none is forgotten."""

from __future__ import annotations

import yaml

from tests.lab.manifests import BASE, KUSTOMIZATION, base


def test_files_are_named_after_their_objects() -> None:
    """Whoever looks for an object finds its file."""
    names = {
        f"{thing['metadata']['name'].partition('.')[0]}-{thing['kind'].lower()}.yaml"
        for thing in base()
    }

    assert {path.name for path in BASE.glob("*.yaml")} == {*names, KUSTOMIZATION}


def test_every_file_is_applied() -> None:
    """A file that kustomize does not name would do nothing."""
    kustomization = yaml.safe_load((BASE / KUSTOMIZATION).read_text())
    files = {path.name for path in BASE.glob("*.yaml")} - {KUSTOMIZATION}

    assert set(kustomization["resources"]) == files
