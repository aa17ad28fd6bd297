"""Extended resources on a node, from nothing to pods that hold them, and back.

Kubernetes' own walk-through ("Advertise Extended Resources for a Node") on the real API
server and kube-scheduler, with our command and our agent in place of `curl`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from contracts.ids import NodeName
from contracts.names import AGENT_MANAGER, GATE
from nodeagent.advertise.advertiser import Advertiser
from runtime.kube.api import KubernetesApi
from tests.lab.cluster import is_running
from tests.lab.command_line import moorings
from tests.lab.controlplane import fleet
from tests.lab.controlplane.client import STRATEGIC, Json, Kube, RefusedError, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.server import ControlPlane


@pytest.fixture
async def host(kube: Kube, namespace: str) -> AsyncIterator[Fleet]:
    """One node without devices."""
    async with fleet.running(kube, namespace, ("a",), devices=()) as host:
        yield host


def dongle(host: Fleet) -> str:
    """Name a resource that nobody else counts."""
    return f"{host.namespace}.example.com/dongle"


async def agent(
    plane: ControlPlane, home: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run `moorings agent` as the admin of the cluster."""
    where = f"--kubeconfig={plane.kubeconfig()}"
    return await asyncio.to_thread(moorings, "agent", *arguments, where, home=home)


async def amounts(host: Fleet, name: str) -> tuple[str | None, str | None]:
    """Read a resource of the node: capacity and allocatable."""
    status = (await host.kube.get(named("v1", "Node", host.a)))["status"]
    return status["capacity"].get(name), status["allocatable"].get(name)


async def user(host: Fleet, name: str, resource: str, count: str) -> Json:
    """Create a pod that asks for so many."""
    pod = host.pod(name)
    wanted = {"requests": {resource: count}, "limits": {resource: count}}
    pod["spec"]["containers"][0]["resources"] = wanted
    return await host.kube.create(pod)


def lacks(pod: Json, resource: str) -> bool:
    """Whether kube-scheduler says that there is not enough of it."""
    return any(
        f"Insufficient {resource}" in condition.get("message", "")
        for condition in pod["status"].get("conditions", ())
    )


async def test_a_resource_is_offered_held_and_withdrawn(
    host: Fleet, kube: Kube, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """All that a pod asks for, or it waits; nobody who runs loses any."""
    name = dongle(host)
    waits = await user(host, "early", name, "3")
    await kube.until(waits, lambda pod: lacks(pod, name))
    said = await agent(control_plane, tmp_path, "advertise", host.a, f"{name}=4000m")
    assert said.returncode == 0, said.stderr
    assert await amounts(host, name) == ("4", "4")
    await kube.until(waits, is_running)
    more = await user(host, "more", name, "2")
    await kube.until(more, lambda pod: lacks(pod, name))
    said = await agent(
        control_plane, tmp_path, "advertise", host.a, f"{name}=5", "-o", "json"
    )
    assert json.loads(said.stdout)["before"] == {name: "4"}
    await kube.until(more, is_running)
    said = await agent(control_plane, tmp_path, "withdraw", host.a, name)
    assert said.returncode == 0, said.stderr
    assert await amounts(host, name) == (None, None)
    late = await user(host, "late", name, "1")
    await kube.until(late, lambda pod: lacks(pod, name))
    assert is_running(await kube.get(more))
    said = await agent(control_plane, tmp_path, "withdraw", host.a, name)
    assert "nothing to change" in said.stdout


@pytest.mark.parametrize("count", ["1500m"])
async def test_parts_are_refused_by_everybody(
    host: Fleet, control_plane: ControlPlane, tmp_path: Path, count: str
) -> None:
    """By the API server, by `plan` and `lint` ahead of it, and by the agent."""
    name = dongle(host)
    with pytest.raises(RefusedError, match="must be an integer"):
        await user(host, "part", name, count)
    pod = host.pod("part")
    wanted = {"requests": {name: count}, "limits": {name: count}}
    pod["spec"]["containers"][0]["resources"] = wanted
    file = tmp_path / "pod.yaml"
    file.write_text(json.dumps(pod))
    for command in ("plan", "lint"):
        said = await asyncio.to_thread(
            moorings, command, f"--filename={file}", home=tmp_path
        )
        assert said.returncode != 0, command
        assert "must be an integer" in said.stdout, command
    said = await agent(control_plane, tmp_path, "advertise", host.a, f"{name}={count}")
    assert said.returncode == 2
    assert f"{name}={count}': must be an integer" in said.stderr
    assert await amounts(host, name) == (None, None)


async def test_what_was_meant_is_said_to_who_is_tired(
    host: Fleet, kube: Kube, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """A node's name, a driver's own resource, and neither changed anything."""
    name = dongle(host)
    said = await agent(control_plane, tmp_path, "advertise", f"{host.a}x", f"{name}=1")
    assert said.returncode == 3
    assert f"did you mean {host.a}" in said.stderr
    node = named("v1", "Node", host.a)
    await kube.request(
        "PATCH",
        f"/api/v1/nodes/{host.a}/status",
        {"status": {"capacity": {name: "2"}}},
        media=STRATEGIC,
        fieldManager="kubelet",
    )
    # Nobody copies it where no kubelet runs: that is why both are written.
    assert await amounts(host, name) == ("2", None)
    said = await agent(control_plane, tmp_path, "advertise", host.a, f"{name}=4")
    assert said.returncode == 2
    assert "is kubelet's" in said.stderr
    assert "--force" in said.stderr
    said = await agent(
        control_plane, tmp_path, "advertise", host.a, f"{name}=4", "--force"
    )
    assert said.returncode == 0, said.stderr
    assert (await kube.get(node))["status"]["capacity"][name] == "4"


@asynccontextmanager
async def advertised(
    plane: ControlPlane, node: str, **resources: int
) -> AsyncIterator[None]:
    """Run the agent's part that keeps extended resources."""
    stop = asyncio.Event()
    way = KubernetesApi.open(str(plane.kubeconfig()), manager=AGENT_MANAGER)
    async with way as api:
        keeper = Advertiser(api, NodeName(node), resources, look_s=0.1)
        running = asyncio.create_task(keeper.advertise(stop))
        try:
            yield
        finally:
            stop.set()
            await running


async def test_an_agent_keeps_what_it_is_told_and_no_more(
    host: Fleet, kube: Kube, control_plane: ControlPlane
) -> None:
    """Also when kubelet forgot it, and when the configuration has another."""
    name, other = dongle(host), f"{dongle(host)}-2"
    node = named("v1", "Node", host.a)
    async with advertised(control_plane, host.a, **{name: 4}):
        await kube.until(node, lambda n: n["status"]["allocatable"].get(name) == "4")
        zero = {"status": {"capacity": {name: "0"}, "allocatable": {name: "0"}}}
        await kube.patch(node, zero, "status", media=STRATEGIC)
        await kube.until(node, lambda n: n["status"]["allocatable"].get(name) == "4")
    async with advertised(control_plane, host.a, **{other: 1}):
        found = await kube.until(
            node, lambda n: n["status"]["allocatable"].get(other) == "1"
        )
    assert name not in found["status"]["capacity"]
    assert found["status"]["capacity"]["cpu"] == "64"


OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-"


@pytest.mark.parametrize("what", ["llc", "fpga", "special-storage"])
async def test_opaque_integers_are_offered_by_their_own_names(
    host: Fleet, kube: Kube, control_plane: ControlPlane, tmp_path: Path, what: str
) -> None:
    """A pod waits while there are too few, and runs once more are offered."""
    name = f"{OPAQUE}{what}"
    said = await agent(control_plane, tmp_path, "advertise", host.a, f"{name}=5000m")
    assert said.returncode == 0, said.stderr
    assert await amounts(host, name) == ("5", "5")
    fits = await user(host, "fits", name, "3")
    await kube.until(fits, is_running)
    waits = await user(host, "waits", name, "3")
    await kube.until(waits, lambda pod: lacks(pod, name))
    said = await agent(control_plane, tmp_path, "advertise", host.a, f"{name}=3Ki")
    assert said.returncode == 0, said.stderr
    await kube.until(waits, is_running)


async def test_an_opaque_integer_is_offered_by_the_request_of_its_documentation(
    host: Fleet, kube: Kube
) -> None:
    """A JSON patch of `status.capacity`, with `~1` for the slash.

    A kubelet of today does not copy it to `status.allocatable`, by which
    kube-scheduler counts: so `advertise` writes both.
    """
    name = f"{OPAQUE}foo"
    pointer = name.replace("/", "~1")
    operation = {"op": "add", "path": f"/status/capacity/{pointer}", "value": "5"}
    node = named("v1", "Node", host.a)
    await kube.patch(node, [operation], "status")
    assert await amounts(host, name) == ("5", None)
    pod = await user(host, "my-pod", name, "1")
    await kube.until(pod, lambda found: lacks(found, name))


async def test_parts_of_opaque_integers_are_warned_of(
    host: Fleet, tmp_path: Path
) -> None:
    """The API server takes them now, and kube-scheduler rounds up."""
    name = f"{OPAQUE}foo"
    pod = await user(host, "part", name, "1500m")
    assert pod["spec"]["containers"][0]["resources"]["requests"][name] == "1500m"
    del pod["status"]
    pod["spec"]["schedulingGates"] = [{"name": GATE}]
    file = tmp_path / "pod.yaml"
    file.write_text(json.dumps(pod))
    for command in ("plan", "lint"):
        said = await asyncio.to_thread(
            moorings, command, f"--filename={file}", home=tmp_path
        )
        text = said.stdout + said.stderr
        assert "1500m is not a whole number; it counts as 2" in text, command
