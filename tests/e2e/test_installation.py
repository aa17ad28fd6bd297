"""Moorings as its manifests install it, in containers on a node of its own.

kubelet, containerd and runc are real, as are the images, made without a container
runtime; played are kube-proxy and the cluster's DNS (tests/lab/node/network.py). Nobody
enforces NetworkPolicies here.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorings.local.nats_server import find_server_program
from tests.conftest import OwnControlPlane
from tests.lab.cluster import is_running
from tests.lab.command_line import moorings
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.kubectl import Kubectl, serve_gangs
from tests.lab.controlplane.options import CONTROLLERS, Options
from tests.lab.manifests import K8S, KUSTOMIZATION, workloads
from tests.lab.node import node as nodes
from tests.lab.node.node import Node
from tests.lab.services import eventually

pytestmark = pytest.mark.soak

SYSTEM = "moorings-system"
NODE = "node-0"
"""A name that the simulated fleet knows."""
PATIENCE_S = 120.0
QUICKSTART = K8S.parent / "docs" / "quickstart"
NIC_DRIVER = "nic.moorings.dev"
COMPONENTS = ("ownership", "tokens", "single-node")
SERVICES = {
    "statefulset/nats": "StatefulSet",
    "deployment/authcallout": "Deployment",
    "deployment/solver": "Deployment",
    "deployment/publisher": "Deployment",
    "daemonset/nodeagent": "DaemonSet",
}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What the manifests name: our image, and NATS' program as one of its own."""
    if shutil.which("apt-get") is None or sys.version_info[:2] != (3, 11):
        pytest.skip("the image is made on Debian 12 with Python 3.11 only")
    folder = tmp_path_factory.mktemp("images")
    ours, nats = folder / "moorings.tar", folder / "nats.tar"
    script = str(K8S.parent / "scripts" / "image.py")
    subprocess.run([sys.executable, script, "moorings", str(ours)], check=True)
    (container,) = workloads()["nats"]["spec"]["template"]["spec"]["containers"]
    program = find_server_program()
    nodes.make_image(container["image"], nats, str(program), "/nats-server")
    shell = folder / "shell.tar"
    nodes.make_shell_image(image_of(QUICKSTART / "nic-pod.yaml"), shell)
    return [ours, nats, shell]


def image_of(manifest: Path) -> str:
    """Read which image the pod of a manifest runs."""
    documents = yaml.safe_load_all(manifest.read_text())
    (pod,) = [document for document in documents if document["kind"] == "Pod"]
    image: str = pod["spec"]["containers"][0]["image"]
    return image


def write_site(folder: Path) -> Path:
    """Write the site of a cluster of one node, with the secrets that it needs.

    Its devices are simulated.
    """
    shutil.copytree(K8S, folder / "k8s")
    site = folder / "k8s" / "site"
    secrets = site / "secrets"
    scripts = folder / "k8s"
    subprocess.run(["bash", scripts / "secrets.sh", secrets, "new"], check=True)
    write_kustomization(site, "../overlays/single-node")
    return site


def write_kustomization(site: Path, installed: str, **more: object) -> None:
    """Say what a site consists of, besides its secrets."""
    resources = [installed, "secrets/secrets.yaml", "secrets/callout.yaml"]
    text = yaml.safe_dump({"resources": resources, **more})
    (site / KUSTOMIZATION).write_text(text)


def offer_network_cards(site: Path) -> None:
    """Change the site as docs/drivers.md has it: the agents list network cards."""
    for name in ("nics.sh", "sources.yaml"):
        shutil.copy(QUICKSTART / name, site)
    own = {"namespace": SYSTEM, "behavior": "replace"}
    owned = [f"{what}={NIC_DRIVER}" for what in ("drivers", "classes")]
    write_kustomization(
        site,
        "../base",
        components=[f"../components/{name}" for name in COMPONENTS],
        configMapGenerator=[
            {"name": "ownership", **own, "literals": owned},
            {"name": "sources", **own, "files": ["sources.yaml", "nics.sh"]},
        ],
    )


def volume(folder: Path) -> Json:
    """Make the volume of NATS, as the admin of a node without a provisioner does."""
    folder.mkdir()
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
    made = named("v1", "PersistentVolume", "nats")
    made["spec"] = {
        "capacity": {"storage": "20Gi"},
        "accessModes": ["ReadWriteOnce"],
        "local": {"path": str(folder)},
        "nodeAffinity": {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
        },
    }
    return made


async def wait_rolled_out(kube: Kube, node: Node, kubectl: Kubectl) -> None:
    """Wait until every service says that it is ready."""
    try:
        for name, kind in SERVICES.items():
            what = named("apps/v1", kind, name.partition("/")[2], SYSTEM)
            await kube.until(what, is_rolled_out, PATIENCE_S)
    except AssertionError as late:
        raise AssertionError(await say(kube, node, kubectl)) from late


async def say(kube: Kube, node: Node, kubectl: Kubectl) -> str:
    """Gather what tells why something is not as awaited."""
    pods = await kube.list("v1", "Pod")
    logs = "\n".join(node.container_log(pod)[-3000:] for pod in pods)
    told = kubectl("get", "pods,events,resourceclaims", "-A", "-o", "wide")
    return f"{told}\n{logs}\n{node.log()}"


async def logs_of(kube: Kube, node: Node, job: str) -> list[str]:
    """Read what each pod of a Job wrote."""
    pods = await kube.list("v1", "Pod", labelSelector=f"job-name={job}")
    return [node.container_log(pod) for pod in pods]


def is_complete(job: Json) -> bool:
    """Tell whether all pods of a Job have succeeded."""
    conditions = job.get("status", {}).get("conditions", ())
    return any(entry["type"] == "Complete" for entry in conditions)


def devices_seen(log: str) -> set[str]:
    """Find the devices that the environment of a container names."""
    return set(re.findall(r"DEVICE_\w+=(\S+)", log))


def is_rolled_out(found: Json) -> bool:
    """Tell whether all pods of a workload are as it says now, and ready."""
    status: dict[str, Any] = found.get("status", {})
    if status.get("observedGeneration") != found["metadata"]["generation"]:
        return False
    wanted = status.get("desiredNumberScheduled", found["spec"].get("replicas", 1))
    updated = status.get("updatedNumberScheduled", status.get("updatedReplicas", 0))
    ready = status.get("numberReady", status.get("readyReplicas", 0))
    return bool(wanted and ready == updated == wanted)


async def test_the_manifests_run_on_a_node(
    own_control_plane: OwnControlPlane,
    control_plane_programs: Path,
    runtime_programs: Path,
    images: list[Path],
    tmp_path: Path,
) -> None:
    """All services become Ready as containers; a Job's gang runs to its end.

    Then the site offers what the machine really has, and a pod gets one of it.
    """
    plane = own_control_plane(
        Options(users=(nodes.user_of(NODE),), controllers=CONTROLLERS)
    )
    kubectl = Kubectl(control_plane_programs / "kubectl", plane.kubeconfig())
    serve_gangs(kubectl)
    site = write_site(tmp_path)
    kubectl("apply", "--server-side", "-k", str(site))
    async with (
        nodes.running(plane, runtime_programs, NODE, images) as node,
        plane.client() as kube,
    ):
        await kube.create(volume(node.folder / "volume"))
        kubectl("label", "node", NODE, "moorings.dev/agent=true")
        await wait_rolled_out(kube, node, kubectl)
        await run_job(kube, node, kubectl)
        offer_network_cards(site)
        kubectl("apply", "--server-side", "-k", str(site))
        await wait_rolled_out(kube, node, kubectl)
        await hold_network_card(kube, node, kubectl, site, tmp_path)


async def test_one_command_is_enough_for_a_try(
    own_control_plane: OwnControlPlane,
    control_plane_programs: Path,
    runtime_programs: Path,
    images: list[Path],
) -> None:
    """The overlay `try` becomes Ready by itself, and a Job's gang runs to its end."""
    plane = own_control_plane(
        Options(users=(nodes.user_of(NODE),), controllers=CONTROLLERS)
    )
    kubectl = Kubectl(control_plane_programs / "kubectl", plane.kubeconfig())
    kubectl("apply", "--server-side", "-k", str(K8S / "overlays" / "try"))
    async with (
        nodes.running(plane, runtime_programs, NODE, images) as node,
        plane.client() as kube,
    ):
        await wait_rolled_out(kube, node, kubectl)
        await run_job(kube, node, kubectl)


async def run_job(kube: Kube, node: Node, kubectl: Kubectl) -> None:
    """Run the gang of an example to its end: each pod has devices of its own."""
    job = named("batch/v1", "Job", "train", "default")
    kubectl("apply", "-f", str(K8S / "examples" / "job"))
    try:
        await kube.until(job, is_complete, PATIENCE_S)
    except AssertionError as late:
        raise AssertionError(await say(kube, node, kubectl)) from late
    seen = [devices_seen(log) for log in await logs_of(kube, node, "train")]
    assert [len(names) for names in seen] == [2] * 4
    assert len(set().union(*seen)) == 8


async def hold_network_card(
    kube: Kube, node: Node, kubectl: Kubectl, site: Path, home: Path
) -> None:
    """Follow docs/drivers.md: a pod holds a card that this machine has."""
    cards = list_cards()
    if not cards:
        pytest.skip("this machine has no network card in /sys/class/net")
    kubectl("apply", "-f", str(QUICKSTART / "nic-pod.yaml"))
    pod = named("v1", "Pod", "nic", "default")
    try:
        running = await kube.until(pod, is_running, PATIENCE_S)
        log = await logged(node, running, "NIC=")
        devices = await devices_shown(kube, node, site, home)
    except AssertionError as late:
        raise AssertionError(await say(kube, node, kubectl)) from late
    (held,) = [row for row in devices if row["states"] == ["Held"]]
    (holder,) = held["holders"]
    assert held["name"] in cards
    assert f"NIC={held['name']}" in log.split()
    assert (held["node"], held["driver"]) == (NODE, NIC_DRIVER)
    assert (holder["gang"], holder["pods"]) == ("default/nic", ["nic"])
    assert {row["name"] for row in devices} == cards


def list_cards() -> set[str]:
    """Give the network cards of this machine, as the driver of the document does."""
    command = ["sh", str(QUICKSTART / "nics.sh")]
    listed = subprocess.run(command, check=True, capture_output=True)
    return {device["name"] for device in json.loads(listed.stdout)["devices"]}


async def logged(node: Node, pod: Json, text: str) -> str:
    """Wait until a container has written something."""
    await eventually(lambda: text in node.container_log(pod), f"{text} in the log")
    return node.container_log(pod)


async def devices_shown(
    kube: Kube, node: Node, site: Path, home: Path
) -> list[dict[str, Any]]:
    """Ask `moorings get devices` as the user viewer, whose Secret the cluster has."""
    secret = await kube.get(named("v1", "Secret", "nats-user-viewer", SYSTEM))
    password = home / "password"
    password.write_bytes(base64.b64decode(secret["data"]["password"]))
    nats = await kube.get(named("v1", "Pod", "nats-0", SYSTEM))
    access = {
        "MOORINGS_BUS_CA_FILE": str(site / "secrets" / "authority.crt"),
        "MOORINGS_BUS_USER": "viewer",
        "MOORINGS_BUS_PASSWORD_FILE": str(password),
    }
    async with node.forward(nats["status"]["podIP"], 4222) as port:
        answer = await asyncio.to_thread(
            moorings, "get", "devices", "-o", "json",
            home=home, server=f"nats://localhost:{port}", environment=access,
        )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows
