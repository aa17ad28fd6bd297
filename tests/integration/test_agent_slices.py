"""ResourceSlices of our node agents on the real API server, come what may."""

from __future__ import annotations

import asyncio

import pytest

from runtime.bus.bus import Bus
from tests.conftest import OwnControlPlane
from tests.lab.agent_objects import Agents, agents_of, said, sizes, taints
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import named
from tests.lab.controlplane.options import API_SERVER, ETCD, Options
from tests.lab.nats_server import LabServer


@pytest.mark.parametrize(
    ("is_owned", "split"), [(False, [128, 1]), (True, [64, 64, 1])]
)
async def test_129_devices_are_split_as_the_api_server_demands(
    agents: Agents, is_owned: bool, split: list[int]
) -> None:
    async with agents.running(*((agents.driver,) if is_owned else ())):
        await agents.announce(agents.pool(129))
        found = await agents.slices(lambda items: sizes(items) == split)
    counts = {item["spec"]["pool"]["resourceSliceCount"] for item in found}
    assert counts == {len(split)}
    assert len(taints(found)) == (129 if is_owned else 0)


async def test_health_taints_a_device_in_place_and_keeps_its_first_time(
    agents: Agents,
) -> None:
    async with agents.running():
        await agents.announce(agents.pool(2))
        (before,) = await agents.slices(lambda items: sizes(items) == [2])
        await agents.judge("gpu-0")
        (sick,) = await agents.slices(lambda items: len(taints(items)) == 1)
        await asyncio.sleep(1.0)  # timeAdded has whole seconds
        await agents.judge("gpu-0", "gpu-1")
        (both,) = await agents.slices(lambda items: len(taints(items)) == 2)
        await agents.judge()
        (well,) = await agents.slices(lambda items: not taints(items))
    times = [device["taints"][0]["timeAdded"] for device in both["spec"]["devices"]]
    assert times[0] == sick["spec"]["devices"][0]["taints"][0]["timeAdded"] < times[1]
    assert well["spec"] == before["spec"]
    assert well["metadata"]["uid"] == before["metadata"]["uid"]


async def test_wiped_slices_come_back_and_foreign_edits_are_repaired(
    agents: Agents,
) -> None:
    async with agents.running():
        await agents.announce(agents.pool(129))
        before = await agents.slices(lambda items: sizes(items) == [128, 1])
        uids = {item["metadata"]["uid"] for item in before}
        # What kubelet does when it starts, and when a driver stays away.
        path, select = (
            f"/apis/{objects.RESOURCE}/resourceslices",
            f"spec.nodeName={agents.node}",
        )
        await agents.kube.request("DELETE", path, fieldSelector=select)
        first, second = await agents.slices(
            lambda items: (
                sizes(items) == [128, 1]
                and not uids & {item["metadata"]["uid"] for item in items}
            )
        )
        names = [item["metadata"]["name"] for item in before]
        assert [first["metadata"]["name"], second["metadata"]["name"]] == names
        edit = {
            "metadata": {"labels": {"team": "a"}, "ownerReferences": []},
            "spec": {"devices": [{"name": "gpu-7"}]},
        }
        await agents.kube.patch(second, edit)
        _, repaired = await agents.slices(
            lambda items: items[1]["spec"]["devices"] == second["spec"]["devices"]
        )
    assert repaired["spec"] == second["spec"]
    assert repaired["metadata"]["labels"] == {"team": "a"}
    owners = repaired["metadata"]["ownerReferences"]
    assert owners == second["metadata"]["ownerReferences"]


async def test_slices_go_with_their_node_and_come_with_the_next(agents: Agents) -> None:
    async with agents.running():
        await agents.announce(agents.pool(2))
        (made,) = await agents.slices(lambda items: len(items) == 1)
        first = await agents.kube.get(named("v1", "Node", agents.node))
        await agents.kube.delete(first)
        await agents.slices(lambda items: not items)
        second = await agents.kube.create(objects.node(agents.node))
        (again,) = await agents.slices(lambda items: len(items) == 1)
    uids = [item["metadata"]["ownerReferences"][0]["uid"] for item in (made, again)]
    assert uids == [item["metadata"]["uid"] for item in (first, second)]


async def test_pool_that_somebody_else_publishes_is_left_to_them(
    agents: Agents, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two publishers of one pool would fight; it is ours again when they leave it."""
    theirs = objects.resource_slice(agents.driver, agents.node, objects.devices(3))
    async with agents.running():
        await agents.announce(agents.pool(2))
        await agents.slices(lambda items: sizes(items) == [2])
        theirs = await agents.kube.create(theirs)
        # The watch and the bus are two ways: what comes by the first must be known.
        await said(capsys, "somebody else publishes it")
        await agents.announce(agents.pool(4))
        await agents.judge("gpu-0")
        await asyncio.sleep(0.3)
        assert sizes(await agents.slices(lambda items: len(items) == 2)) == [2, 3]
        await agents.kube.delete(theirs)
        found = await agents.slices(lambda items: sizes(items) == [4])
    assert list(taints(found)) == ["gpu-0"]


async def test_older_api_server_keeps_no_taints_which_is_said_once(
    own_control_plane: OwnControlPlane,
    bus: Bus,
    nats_server: LabServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Kubernetes 1.34 drops them, as do others with the gate off."""
    options = Options(programs=(ETCD, API_SERVER), emulated_version="1.34")
    control_plane = own_control_plane(options)
    async with control_plane.client() as kube:
        agents = await agents_of(control_plane, kube, bus, nats_server)
        theirs = objects.resource_slice("foreign.example.com", agents.node, ())
        await kube.create(theirs)
        async with agents.running(agents.driver, "foreign.example.com"):
            await agents.announce(agents.pool(2))
            (first,) = await agents.slices(lambda items: sizes(items) == [2])
            await agents.announce(agents.pool(2), agents.other_pool())
            found = await agents.slices(lambda items: len(items) == 2)
    assert taints(found) == {}
    assert first in found
    output = capsys.readouterr().out
    assert output.count("slice.fields_dropped") == 1
    assert "spec.devices[].taints" in output
    assert output.count("slices.published") == 2
    assert output.count("rules.unserved") == 1
    assert "['foreign.example.com']" in output


async def test_health_reaches_slices_once_the_api_server_is_back(
    own_control_plane: OwnControlPlane, bus: Bus, nats_server: LabServer
) -> None:
    control_plane = own_control_plane(Options(programs=(ETCD, API_SERVER)))
    async with control_plane.client() as kube:
        agents = await agents_of(control_plane, kube, bus, nats_server)
        async with agents.running():
            await agents.announce(agents.pool(2))
            await agents.slices(lambda items: len(items) == 1)
            control_plane.kill(API_SERVER)
            await agents.judge("gpu-1")
            await asyncio.sleep(0.3)
            await control_plane.restart(API_SERVER)
            found = await agents.slices(lambda items: bool(taints(items)))
    assert list(taints(found)) == ["gpu-1"]
