"""A node's agent speaks of its own pools and drivers; the devices of others stay."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from contracts.gang import Gang
from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced, GangAllocated, GangPending
from runtime.bus.bus import Bus
from tests.builders import (
    DRIVER,
    device_class,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    resource_slice,
)
from tests.lab.command_line import moorings
from tests.lab.nats_server import LabServer
from tests.lab.services import (
    CLUSTER,
    announce,
    decision_on,
    eventually,
    observe,
    running,
    solver,
    submit,
)
from tests.lab.two_nodes import inventory, is_decided, two_nodes, wanted

VENDOR = "gpu.vendor.example"
EVIL = NodeName("evil")


def of_vendor(number: int) -> Gang:
    """Ask for one device of another driver."""
    pod = member(member_claim(request(device_class=VENDOR)))
    uid = f"00000000-0000-4000-8000-{number:012}"
    return gang(pod, name=f"v{number}", uid=uid)


async def devices_of(bus: Bus, asked: Gang) -> set[tuple[str, str]]:
    """Wait for a gang's devices; gives each with its node."""
    await eventually(lambda: is_decided(bus, asked, GangAllocated), "it is in")
    decision = await decision_on(bus, asked)
    assert isinstance(decision, GangAllocated)
    return {
        (each.node, result.device)
        for each in decision.members
        for claim in each.claims
        for result in claim.allocation.devices.results
    }


@pytest.mark.parametrize("count", [0, 1])
async def test_pools_that_are_named_after_other_nodes_take_nothing_from_them(
    bus: Bus, nats_server: LabServer, tmp_path: Path, count: int
) -> None:
    """Be they empty or not: a gang is given devices of the nodes themselves."""
    await two_nodes(bus)
    theirs = (
        structs.replace(pool(name=name), devices=devices(count, prefix="phantom"))
        for name in ("a", "b")
    )
    evil = DevicesAnnounced(cluster=CLUSTER, node=EVIL, pools=tuple(theirs))
    async with running(solver(nats_server.url, tmp_path)):
        await announce(bus, evil)
        asked = wanted(1, pods=8)
        await submit(bus, asked)
        assert await devices_of(bus, asked) == {
            (node, each.name) for node in ("a", "b") for each in devices(4)
        }


async def test_who_contests_a_pool_is_named(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """A pool that is named after nobody is nobody's while two nodes announce it."""
    await two_nodes(bus)
    shared = [
        structs.replace(inventory(node), pools=(pool(*devices(4), name="shared"),))
        for node in ("a", "b")
    ]
    async with running(solver(nats_server.url, tmp_path)):
        await announce(bus, *shared)
        asked = wanted(1)
        await submit(bus, asked)
        await eventually(lambda: is_decided(bus, asked, GangPending), "it waits")
        decision = await decision_on(bus, asked)
        assert isinstance(decision, GangPending)
        said = f"pool {DRIVER}/shared is announced by nodes a and b"
        assert said in decision.reasons[0].message
        await announce(bus, structs.replace(shared[1], pools=()))
        await eventually(partial(is_decided, bus, asked, GangAllocated), "it is in")


@pytest.mark.parametrize("drivers", [DRIVER, ""])
async def test_devices_of_another_driver_are_those_of_its_slices(
    bus: Bus, nats_server: LabServer, tmp_path: Path, drivers: str
) -> None:
    """Where no driver is set that agents speak for: at least its own pools are."""
    await observe(bus, device_class(VENDOR, f'device.driver == "{VENDOR}"'))
    real = devices(2, prefix="real")
    await observe(bus, resource_slice(*real, node="gpu-0", driver=VENDOR))
    phantom = devices(1, prefix="phantom")
    names = ("gpu-0", "evil") if drivers else ("gpu-0",)
    pools = tuple(pool(*phantom, name=name, driver=VENDOR) for name in names)
    evil = DevicesAnnounced(cluster=CLUSTER, node=EVIL, pools=pools)
    process = solver(nats_server.url, tmp_path, SOLVER_AGENT_DRIVERS=drivers)
    async with running(process):
        await announce(bus, evil)
        found = set[tuple[str, str]]()
        for number in (1, 2):
            await submit(bus, of_vendor(number))
            found |= await devices_of(bus, of_vendor(number))
        assert found == {("gpu-0", each.name) for each in real}
        await submit(bus, of_vendor(3))
        await eventually(lambda: is_decided(bus, of_vendor(3), GangPending), "waits")
        shown = await asyncio.to_thread(
            moorings,
            *("get", "devices", "--node", EVIL, "-o", "json"),
            home=tmp_path,
            server=nats_server.url,
        )
    said = {row["name"]: row for row in json.loads(shown.stdout)}
    if drivers:
        assert said["phantom-0"]["states"] == ["Unavailable"]
        assert "AGENT_DRIVERS" in said["phantom-0"]["why"]
    refused = f"pools[{VENDOR}/evil]" in process.log()
    assert refused is bool(drivers)
