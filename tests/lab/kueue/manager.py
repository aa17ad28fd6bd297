"""Kueue's manager beside a control plane, with its own webhooks and certificates.

Its manifests are applied as released, but for the Service of its webhooks: nobody
routes cluster addresses here, so it names loopback (ExternalName), and the webhooks
name the manager's port. Kueue itself makes the certificates and writes them into a
Secret and the webhooks; the Secret is put into its folder here, as a kubelet would.
It runs as the admin; its RBAC is not tried.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from moorings.local.process import find_free_port
from tests.lab.controlplane.client import Json
from tests.lab.controlplane.kubectl import Kubectl, KubectlError
from tests.lab.controlplane.program import Program
from tests.lab.controlplane.server import ControlPlane

NAMESPACE = "kueue-system"
SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"  # noqa: S105 # its name
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
CERTIFICATES = "certificates"
_APPLIED = ("Namespace", "CustomResourceDefinition", "Secret", *WEBHOOKS)
_READY_S = 60.0


@contextmanager
def running(
    assets: Path, control_plane: ControlPlane, **configuration: Any
) -> Iterator[Program]:
    """Run Kueue while the block runs; its webhooks answer when this yields.

    `configuration`: fields of Kueue's Configuration besides those of addresses.

    Raises:
        NotReadyError: it ends or takes too long.
    """
    program = control_plane.binaries / "kubectl"
    kubectl = Kubectl(program, control_plane.kubeconfig())
    folder = control_plane.folder / "kueue"
    folder.mkdir()
    webhook_port = find_free_port()
    manager = Program("kueue", folder, secure=False, ready_path="/readyz")
    made = list(_manifests(kubectl, assets, webhook_port))
    # Server-side: descriptions of the Workload are longer than an annotation may be.
    kubectl("apply", "--server-side", "-f", "-", given=made)
    kubectl("wait", "--for=condition=Established", "crd", "--all")
    config = folder / "config.json"
    addresses = _addresses(manager.port, webhook_port, folder)
    config.write_text(json.dumps({**addresses, **configuration}))
    try:
        manager.spawn(
            [
                str(assets / "kueue"),
                f"--config={config}",
                f"--kubeconfig={control_plane.kubeconfig()}",
                "--zap-log-level=3",
            ]
        )
        _mount(kubectl, folder / CERTIFICATES)
        manager.wait_ready()
        _await_webhooks(kubectl)
        yield manager
    finally:
        manager.kill()


def _manifests(kubectl: Kubectl, assets: Path, port: int) -> Iterator[Json]:
    """Give what of Kueue's own manifests is applied, its webhooks at a port."""
    made = kubectl("kustomize", str(assets / "config" / "default"))
    for resource in yaml.safe_load_all(made):
        if resource["kind"] in _APPLIED:
            _set_port(resource, port)
            yield resource
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def _set_port(value: Any, port: int) -> None:
    """Name the port of the webhooks' Service wherever it is named."""
    if isinstance(value, list):
        for item in value:
            _set_port(item, port)
    elif isinstance(value, dict):
        if value.get("name") == SERVICE:
            value["port"] = port
        for item in value.values():
            _set_port(item, port)


def _addresses(health_port: int, webhook_port: int, folder: Path) -> Json:
    """Say where Kueue serves what: on loopback alone, without an election."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {"bindAddress": f"127.0.0.1:{find_free_port()}"},
        "webhook": {
            "host": "127.0.0.1",
            "port": webhook_port,
            "certDir": str(folder / CERTIFICATES),
        },
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": SERVICE,
            "webhookSecretName": SECRET,
        },
        "leaderElection": {"leaderElect": False},
        "integrations": {"frameworks": ["batch/job"]},
        "clientConnection": {"qps": 500, "burst": 1000},
        # It would listen on every address, at a port that cannot be chosen.
        "featureGates": {"VisibilityOnDemand": False},
    }


def _mount(kubectl: Kubectl, folder: Path) -> None:
    """Write the certificates into a folder, once Kueue has made them."""
    get = ("get", "secret", SECRET, "-n", NAMESPACE, "-o", "json")
    deadline = time.monotonic() + _READY_S
    while not (data := json.loads(kubectl(*get)).get("data")):
        assert time.monotonic() < deadline, f"no certificates after {_READY_S:g} s"
        time.sleep(0.2)
    folder.mkdir()
    for name, value in data.items():
        (folder / name).write_bytes(base64.b64decode(value))


def _await_webhooks(kubectl: Kubectl) -> None:
    """Wait until the API server reaches the webhooks: a flavor can be made."""
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "probe"},
    }
    deadline = time.monotonic() + _READY_S
    while True:
        try:
            kubectl("apply", "--server-side", "-f", "-", given=[flavor])
            break
        except KubectlError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    kubectl("delete", "resourceflavor", "probe")
