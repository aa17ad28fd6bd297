"""The rights of k8s/base for a publisher that runs as a process: its role, its bounds.

So every end-to-end test also shows that RBAC and the admission policies let the
publisher do what it must.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.lab.controlplane.client import Json
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.server import ControlPlane
from tests.lab.manifests import K8S, base

SYSTEM = "moorings-system"
SLICES = "moorings-publisher-slices"
VALID = "24h"


def publisher_kubeconfig(control_plane: ControlPlane) -> Path:
    """Write the kubeconfig of the publisher's account.

    Where Moorings is not installed it is given its rights first.
    """
    path = control_plane.folder / "publisher.kubeconfig"
    if not path.exists():
        program = control_plane.binaries / "kubectl"
        admin = Kubectl(program, control_plane.kubeconfig())
        account = ("publisher", "-n", SYSTEM)
        if not admin("get", "serviceaccount", *account, "--ignore-not-found"):
            admin("apply", "-f", "-", given=_rights())
        token = admin("create", "token", *account, f"--duration={VALID}")
        control_plane.write_kubeconfig(path, token.strip())
    return path


def _rights() -> list[Json]:
    """List what binds and allows the publisher, its namespace first.

    It may publish for any driver, as these are the tests' own.
    """
    kueue = K8S / "components" / "kueue"
    others = [
        yaml.safe_load(path.read_text())
        for path in sorted(kueue.glob("moorings-*.yaml"))
    ]
    rights = [
        thing
        for thing in (*base(), *others)
        if thing["metadata"]["name"].startswith(("publisher", "moorings-publisher"))
        and thing["kind"] not in {"Deployment", "NetworkPolicy", "PodDisruptionBudget"}
    ]
    for thing in rights:
        if thing["metadata"]["name"] == SLICES and "matchConstraints" in thing["spec"]:
            thing["spec"]["variables"][0]["expression"] = "['']"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}
    return [namespace, *rights]
