"""`kubectl apply --server-side -k k8s/overlays/try`: one command installs all of it.

The API server takes every object, the controllers make every pod, and the Job's program
makes the Secrets with the rights of its account. test_installation runs it on a node.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import OwnControlPlane
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube, named
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.options import CONTROLLERS, Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.manifests import K8S, OVERLAYS
from tests.lab.services import eventually

SYSTEM = "moorings-system"
PROGRAM = K8S / "components" / "new-secrets" / "create.py"
SERVICES = {"authcallout", "nats", "new-secrets", "nodeagent", "publisher", "solver"}
SECRETS = {
    "authcallout-keys",
    "nats-callout",
    "nats-passwords",
    "nats-tls",
    *(f"nats-user-{user}" for user in ("nodeagent", "platform", "publisher")),
    *(f"nats-user-{user}" for user in ("solver", "viewer")),
}


def make_secrets(account: Path, server: str) -> subprocess.CompletedProcess[str]:
    """Run what the Job runs."""
    host, _, port = server.removeprefix("https://").partition(":")
    told = {"NAMESPACE": SYSTEM, "ACCOUNT": str(account)}
    told |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    return subprocess.run(
        [sys.executable, PROGRAM],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=False,
    )


def give_account(plane: ControlPlane, kubectl: Kubectl, folder: Path) -> Path:
    """Put the files of the Job's service account into a folder, as kubelet does."""
    folder.mkdir()
    token = kubectl("create", "token", "new-secrets", "-n", SYSTEM)
    (folder / "token").write_text(token.strip())
    (folder / "ca.crt").write_bytes(plane.authority.read_bytes())
    return folder


async def list_secrets(kube: Kube) -> dict[str, str]:
    """Give the versions of the Secrets of the namespace."""
    return {
        found["metadata"]["name"]: found["metadata"]["resourceVersion"]
        for found in await kube.list("v1", "Secret", SYSTEM)
    }


async def test_one_command_installs_all(
    own_control_plane: OwnControlPlane, control_plane_programs: Path, tmp_path: Path
) -> None:
    """Every pod is made, and gets the Secrets that it waits for; once."""
    plane = own_control_plane(Options(controllers=CONTROLLERS))
    kubectl = Kubectl(control_plane_programs / "kubectl", plane.kubeconfig())
    async with plane.client() as kube:
        await kube.create(objects.node("any-name"))
        kubectl("apply", "--server-side", "-k", str(OVERLAYS / "try"))

        async def all_made() -> bool:
            pods = await kube.list("v1", "Pod", SYSTEM)
            made = {pod["metadata"]["labels"]["app.kubernetes.io/name"] for pod in pods}
            return made == SERVICES

        await eventually(all_made, "a pod of each service", 60)
        account = give_account(plane, kubectl, tmp_path / "account")
        first = await asyncio.to_thread(make_secrets, account, plane.url)
        made = await list_secrets(kube)
        second = await asyncio.to_thread(make_secrets, account, plane.url)
        await kube.delete(named("v1", "Secret", "authcallout-keys", SYSTEM))
        third = await asyncio.to_thread(make_secrets, account, plane.url)
        again = await list_secrets(kube)

    assert first.returncode == 0, first.stderr
    assert made.keys() == SECRETS
    assert "all Secrets are there" in second.stderr
    assert third.returncode == 0, third.stderr
    assert again.keys() == SECRETS
    assert not made.items() & again.items()
