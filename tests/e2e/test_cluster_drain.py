"""A node is drained of claims: nothing new comes, nobody is ended, and it is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.lab.cluster import create_pods, exists, is_running, template
from tests.lab.command_line import drain
from tests.lab.controlplane.client import Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import eventually
from tests.lab.waits import pods_of, until_told


async def marks(kube: Kube, node: str) -> list[str]:
    """Name what the rules for a node select."""
    rules = await kube.list(RESOURCE, "DeviceTaintRule")
    return [
        rule["spec"]["deviceSelector"].get("device", "*")
        for rule in rules
        if rule["spec"]["deviceSelector"].get("pool") == node
    ]


async def test_a_node_is_free_once_its_last_claim_has_ended(
    site: Fleet, kube: Kube, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Meanwhile nothing new is decided there; the command ends nobody."""
    await template(site, count=4)
    await create_pods(site, "first", range(1), size=1)
    (first,) = await pods_of(site, "first", 1, is_running)
    node = first["spec"]["nodeName"]
    (other,) = set(site.nodes) - {node}
    waiting = asyncio.create_task(
        drain(control_plane.kubeconfig(), tmp_path, f"--node={node}")
    )

    async def marked() -> bool:
        return await marks(kube, node) == ["*"]

    await eventually(marked, "the node's pool is marked", 60.0)
    await create_pods(site, "second", range(1), size=1)
    (second,) = await pods_of(site, "second", 1, is_running)
    assert second["spec"]["nodeName"] == other
    await create_pods(site, "third", range(1), size=1)
    (third,) = await pods_of(site, "third", 1, exists)
    await until_told(kube, third, "GangDevicesTaken")
    assert is_running(await kube.get(first))
    assert not waiting.done()
    site.kubelets.finish(first)
    said = await waiting
    assert said.returncode == 0, said.stderr
    assert f"node {node}: free" in said.stdout
    assert "1 claim is held" in said.stderr
    assert "(used by first-0)" in said.stderr
    gone = await drain(control_plane.kubeconfig(), tmp_path, f"--node={node}", "--undo")
    assert gone.returncode == 0, gone.stderr
    assert await marks(kube, node) == []
    ran = await kube.until(third, is_running)
    assert ran["spec"]["nodeName"] == node


async def test_a_device_that_is_held_is_not_free_in_time(
    site: Fleet, kube: Kube, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The mark stays, and says how it goes; wrong names are said before any."""
    await template(site, "one", count=1)
    await create_pods(site, "train", range(1), "one", size=1)
    (pod,) = await pods_of(site, "train", 1, is_running)
    node, name = pod["spec"]["nodeName"], pod["status"]["resourceClaimStatuses"][0]
    claim = named(RESOURCE, "ResourceClaim", name["resourceClaimName"], site.namespace)
    held = (await kube.get(claim))["status"]["allocation"]["devices"]["results"][0]
    where = (f"--node={node}", f"--device={held['device']}")
    said = await drain(
        control_plane.kubeconfig(), tmp_path, *where, "--timeout=1", "-o", "json"
    )
    assert said.returncode == 1, said.stderr
    answer = json.loads(said.stdout)
    assert answer["drained"] is False
    assert [holder["users"] for holder in answer["holders"]] == [["train-0"]]
    assert await marks(kube, node) == [held["device"]]
    for wrong in ((f"--node={node}", "--device=dev-9"), ("--node=nowhere",)):
        said = await drain(control_plane.kubeconfig(), tmp_path, *wrong)
        assert said.returncode == 3
        assert "no device of node" in said.stderr or "no node named" in said.stderr
    undone = await drain(
        control_plane.kubeconfig(), tmp_path, *where, "--undo", "-o", "json"
    )
    assert json.loads(undone.stdout)["undone"] == [
        f"{site.driver}/{node}/{held['device']}"
    ]
    assert is_running(await kube.get(pod))
