"""Moorings comes and goes as docs/install.md says, by the commands that stand there.

k8s/site is applied with a third-party driver that is Moorings' alone; the services run
as processes with the variables and rights of the manifests. After the end nothing of
Moorings is in the way of a pod, and the Gang objects are still there.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from contracts.names import API_VERSION
from tests.conftest import OwnControlPlane
from tests.lab import shell
from tests.lab.cluster import Stack, create_pods, is_running, name_of, stack, template
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.controlplane.options import CONTROLLERS, Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.manifests import K8S, environment, write_image
from tests.lab.waits import pods_of

INSTALL = "docs/install.md"
SYSTEM = "moorings-system"
PATIENCE_S = 90.0
WITHOUT_NODES = re.compile(
    r"rollout status|podman|scripts/image\.py|^ctr |label node NODE"
)
"""Commands that need an image, or nodes that run one."""
POLICIES = [
    f"{kind}admission{what}"
    for kind in ("mutating", "validating")
    for what in ("policies", "policybindings")
]


def commands(heading: str) -> str:
    """Read the commands of a section, but for what needs an image that runs."""
    lines = "\n".join(shell.blocks(INSTALL, heading)[:3]).splitlines()
    return "\n".join(line for line in lines if not WITHOUT_NODES.search(line))


def write_ownership(folder: Path, driver: str, device_class: str) -> None:
    """Edit the one list, as a person does."""
    site = folder / "k8s" / "site" / "kustomization.yaml"
    text = site.read_text().replace("- drivers=", f"- drivers={driver}")
    site.write_text(text.replace("- classes=", f"- classes={device_class}"))
    write_image(site.parent)


def services(folder: Path) -> dict[str, str]:
    """Give the publisher what it is given about ownership and leading."""
    pod = {"metadata_name": "p", "metadata_uid": "u", "metadata_namespace": SYSTEM}
    said = environment("publisher", folder / "k8s" / "site", **pod)
    owning = ("PUBLISHER_OWNED_DRIVERS", "PUBLISHER_OWNED_CLASSES")
    return {name: said[name] for name in (*owning, "PUBLISHER_NAMESPACE")}


async def fill(site: Fleet, kube: Kube) -> tuple[list[Json], list[Json]]:
    """Let a gang run, and another wait for its devices; gives the pods of both."""
    await template(site, count=4)
    await kube.create(
        {
            "apiVersion": API_VERSION,
            "kind": "Gang",
            "metadata": {"name": "second", "namespace": site.namespace},
            "spec": {
                "members": [
                    {
                        "name": "pod",
                        "count": 2,
                        "claims": [{"name": "d", "templateName": "pair"}],
                    }
                ]
            },
        }
    )
    await create_pods(site, "first", range(2), size=2)
    ran = await pods_of(site, "first", 2, is_running, PATIENCE_S)
    await create_pods(site, "second", range(2))
    gang = named(API_VERSION, "Gang", "second", site.namespace)
    await kube.until(
        gang, lambda item: item.get("status", {}).get("reason"), PATIENCE_S
    )
    return ran, await pods_of(site, "second", 2, lambda pod: not is_running(pod))


async def uninstall(running: Stack, folder: Path, variables: Mapping[str, str]) -> None:
    """Stop the services, as the end of their pods does, and paste the commands."""
    for process in running.processes.values():
        process.close()
    await shell.run(commands("## Uninstall"), folder, variables)


async def test_moorings_comes_and_goes_by_the_book(
    own_control_plane: OwnControlPlane, control_plane_programs: Path, tmp_path: Path
) -> None:
    shutil.copytree(K8S, tmp_path / "k8s")
    # The claims of NATS' volumes go with their namespace.
    controllers = (*CONTROLLERS, "persistentvolumeclaim-protection-controller")
    plane = own_control_plane(Options(controllers=controllers))
    kubectl = Kubectl(control_plane_programs / "kubectl", plane.kubeconfig())
    async with plane.client() as kube:
        async with kube.namespace() as space:
            await come_and_go(plane, kubectl, kube, space, tmp_path)
        # It goes with all that was in it: no finalizer holds a claim.
        await kube.until_gone(named("v1", "Namespace", space), within_s=PATIENCE_S)


async def come_and_go(
    plane: ControlPlane,
    kubectl: Kubectl,
    kube: Kube,
    space: str,
    folder: Path,
) -> None:
    """Install, let a gang run and another wait, uninstall, and look what is left."""
    variables = os.environ | {
        "KUBECONFIG": str(kubectl.kubeconfig),
        "PATH": os.pathsep.join((str(kubectl.program.parent), os.environ["PATH"])),
    }
    write_ownership(folder, f"{space}.example.com", space)
    await shell.run(commands("## Install"), folder, variables)
    async with fleet.running(kube, space) as site:
        rule = named(RESOURCE, "DeviceTaintRule", f"moorings-owned-{site.driver}")
        said = services(folder)
        async with stack(plane, folder, standby=False, **said) as running:
            await kube.until(rule, lambda _: True, PATIENCE_S)
            ran, waiting = await fill(site, kube)
            await uninstall(running, folder, variables)
        await check_nothing_is_left(kubectl, kube)
        await check_pods_go_on(site, kube, ran, waiting)
        gangs = kubectl("get", "gangs", "-n", space, "-o", "name")
        assert gangs == "gang.moorings.dev/second\n"


async def check_nothing_is_left(kubectl: Kubectl, kube: Kube) -> None:
    """Of what could stop or change a pod."""
    assert kubectl("get", ",".join(POLICIES), "-o", "name") == ""
    assert await kube.list(RESOURCE, "DeviceTaintRule") == []
    pods = await kube.list("v1", "Pod")
    assert [name_of(pod) for pod in pods if pod["spec"].get("schedulingGates")] == []


async def check_pods_go_on(
    site: Fleet, kube: Kube, ran: list[Json], waiting: list[Json]
) -> None:
    """Those that ran run; those that waited get what these give back."""
    for pod in ran:
        assert is_running(await kube.get(pod))
        site.kubelets.finish(pod)
    await pods_of(site, "second", 2, is_running, PATIENCE_S)
    # A new one needs no gate, gets none, and is kube-scheduler's alone.
    for pod in waiting:
        site.kubelets.finish(pod)
    new = objects.pod(site.namespace, "third", templates={"d": "pair"})
    await kube.until(await kube.create(new), is_running, PATIENCE_S)
