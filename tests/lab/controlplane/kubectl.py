"""kubectl as people use it, against a control plane of the tests."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.lab.controlplane.client import Json
from tests.lab.manifests import CRD, Manifest

TIMEOUT_S = 180


class KubectlError(Exception):
    """kubectl ended with an error; the message is what it said."""


class Kubectl(NamedTuple):
    """The program, and as whom it speaks to whom."""

    program: Path
    kubeconfig: Path

    def __call__(self, *arguments: str, given: list[Json] | None = None) -> str:
        """Run it and give what it prints; objects are given as `-f -` reads them.

        Raises:
            KubectlError: it was refused.
        """
        listed = {"apiVersion": "v1", "kind": "List", "items": given or []}
        command = [str(self.program), "--kubeconfig", str(self.kubeconfig)]
        ended = subprocess.run(
            [*command, *arguments],
            input=json.dumps(listed),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if ended.returncode != 0:
            raise KubectlError(ended.stderr)
        return ended.stdout


def serve_gangs(kubectl: Kubectl) -> None:
    """Let the API server know Gangs, as k8s/crd has them, and wait until it does."""
    kubectl("apply", "-f", str(CRD))
    kubectl("wait", "--for=condition=Established", "crd/gangs.moorings.dev")


def build(program: Path, folder: Path) -> list[Manifest]:
    """Give what `kubectl kustomize` makes of a folder; it needs no cluster."""
    kubectl = Kubectl(program / "kubectl", Path(os.devnull))
    made = kubectl("kustomize", str(folder))
    return list(yaml.load_all(made, yaml.CSafeLoader))
