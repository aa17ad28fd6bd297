"""Containers on devices that our agent prepares: kubelet, containerd and runc are real.

What kubelet does by itself is tried more closely in test_kubelet.py, where the
runtime is played; here it is seen that real containers get and keep what they hold.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contracts.ids import DriverName
from nodeagent.kubelet.pod_resources import PodResources
from tests.lab.cluster import stack as running_stack
from tests.lab.controlplane import files, objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.server import ControlPlane
from tests.lab.node import node as nodes
from tests.lab.node.forget import forget
from tests.lab.node.node import Node
from tests.lab.node.scenarios import hear_of_health, restart_agent_and_kubelet, roll
from tests.lab.node.site import WAITS, Site, write_fleet
from tests.lab.services import eventually
from tests.lab.soak import sized

pytestmark = pytest.mark.soak

METADATA = "/var/run/kubernetes.io/dra-device-attributes"
PODS = sized(10, 50)
"""Fifty at once take two cores for minutes; test_kubelet.py has them in any case."""


@pytest.fixture
async def site(
    control_plane: ControlPlane,
    runtime_programs: Path,
    kube: Kube,
    namespace: str,
    tmp_path: Path,
) -> AsyncIterator[Site]:
    """A node that runs containers, beside a whole Moorings."""
    name = f"full-{secrets.token_hex(4)}"
    driver = f"{name}.example.com"
    write_fleet(tmp_path, name, driver)
    (tmp_path / "admin.kubeconfig").write_text(control_plane.kubeconfig().read_text())
    device_class = await kube.create(objects.device_class(namespace, driver))
    await kube.create(objects.template(namespace, "one", objects.requests(namespace)))
    admin = files.ADMIN.name
    async with (
        running_stack(control_plane, tmp_path) as stack,
        nodes.running(control_plane, runtime_programs, name, user=admin) as node,
    ):
        yield Site(
            kube=kube,
            namespace=namespace,
            node=node,
            stack=stack,
            folder=tmp_path,
            driver=driver,
        )
    await kube.delete(device_class)
    await forget(control_plane, name)


async def test_containers_hold_their_devices_through_restarts_and_upgrades(
    site: Site,
) -> None:
    """One node, from its first container to an agent that replaces another."""
    async with site.running(site.agent("first", NODEAGENT_DEVICE_METADATA="true")):
        await see_one_container(site)
    await restart_agent_and_kubelet(site)
    await roll(site, PODS)


async def see_one_container(site: Site) -> None:
    """It is told of the device, kubelet lists it, and tells how it is."""
    script = f"cat {METADATA}/resourceclaimtemplates/d/*/*; {WAITS[-1]}"
    pod = await site.until_runs(await site.start("one", "sh", "-c", script))
    claim = await site.claim_of(pod)
    (device,) = claim["status"]["allocation"]["devices"]["results"]
    whole = f"{site.driver}/{device['pool']}/{device['device']}"
    await eventually(lambda: site.node.devices_seen(pod) == {whole}, "it is seen")
    assert isinstance(site.node, Node)
    newest = read_first_object(site.node.container_log(pod))
    assert newest["metadata"]["uid"] == claim["metadata"]["uid"]
    ((told,),) = (request["devices"] for request in newest["requests"])
    assert (told["driver"], told["name"]) == (site.driver, device["device"])
    async with PodResources.open(site.node.kubelet_folder) as pod_resources:
        in_use, _ = await pod_resources.list_held((DriverName(site.driver),))
    (held,) = in_use
    assert (held.pod, str(held.device)) == (f"{site.namespace}/one", whole)
    assert str(held.claim) == f"{site.namespace}/{claim['metadata']['name']}"
    await hear_of_health(site, pod)
    await site.end(pod)
    assert site.cdi_files() == []


def read_first_object(log: str) -> Json:
    """Read the first object of JSON in a container's log, whose lines have a head."""
    line = next(line for line in log.splitlines() if '"DeviceMetadata"' in line)
    found: Json = json.loads(line[line.index("{") :])
    return found
