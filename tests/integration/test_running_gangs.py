"""With its gates open a gang holds what Kubernetes says of its claims, on a real bus.

The test is the publisher: it says what was written, what opened and what STATE holds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.allocation import AllocationResult, Rule
from contracts.claim import ResourceClaim, ResourceClaimStatus
from contracts.gang import Gang
from contracts.ids import DeviceID, GangUID, Namespace, NodeName
from contracts.messages import (
    AllocationWritten,
    DevicesAnnounced,
    GangAllocated,
    GangPending,
    GatesOpened,
)
from contracts.meta import ObjectMeta
from runtime.bus.bus import Bus
from tests.builders import (
    device_class,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
)
from tests.lab.nats_server import LabServer
from tests.lab.services import (
    CLUSTER,
    announce,
    confirm,
    decision_on,
    eventually,
    observe,
    observe_class,
    running,
    solver,
    submit,
)


def wanted(number: int, pods: int = 1, count: int = 2) -> Gang:
    return gang(
        member(member_claim(request(count=count)), count=pods),
        name="train",
        uid=f"00000000-0000-4000-8000-{number:012}",
    )


@pytest.fixture
async def world(bus: Bus) -> Bus:
    """One node with four devices, and their class."""
    pools = (pool(*devices(4), name="a"),)
    node = NodeName("a")
    await announce(bus, DevicesAnnounced(cluster=CLUSTER, node=node, pools=pools))
    await observe_class(bus)
    return bus


async def allocated(bus: Bus, asked: Gang) -> GangAllocated:
    """Wait until a gang is in."""

    async def is_in() -> bool:
        return isinstance(await decision_on(bus, asked), GangAllocated)

    await eventually(is_in, f"{asked.metadata.uid} is allocated")
    decision = await decision_on(bus, asked)
    assert isinstance(decision, GangAllocated)
    return decision


async def refused(bus: Bus, asked: Gang) -> None:
    """Submit a gang, and wait until it is told that devices are taken."""
    await submit(bus, asked)

    async def waits() -> bool:
        decision = await decision_on(bus, asked)
        assert not isinstance(decision, GangAllocated)
        # A slow start says first that it was not tried yet.
        return (
            isinstance(decision, GangPending)
            and decision.reasons[0].rule is not Rule.QUEUED
        )

    await eventually(waits, f"{asked.metadata.uid} waits")
    decision = await decision_on(bus, asked)
    assert isinstance(decision, GangPending)
    assert decision.reasons[0].rule == "DevicesTaken"


def claim_of(name: str, allocation: AllocationResult | None) -> ResourceClaim:
    """Write a claim as the publisher shows it: without what it asks for."""
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default"),
        status=ResourceClaimStatus(allocation=allocation),
    )


def held(decision: GangAllocated) -> list[set[DeviceID]]:
    """List the devices of each pod."""
    return [
        {result.device_id for c in m.claims for result in c.allocation.devices.results}
        for m in decision.members
    ]


async def test_a_device_is_free_once_its_own_claim_is(
    world: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Its gang runs on; and it was not free before STATE had the gang's claims."""
    first = wanted(1, pods=2)
    namespace, uid = Namespace(first.metadata.namespace), GangUID(first.metadata.uid)
    process = solver(nats_server.url, tmp_path)
    async with running(process):
        await submit(world, first)
        decision = await allocated(world, first)
        written = AllocationWritten(
            cluster=CLUSTER, namespace=namespace, uid=uid, attempt=1
        )
        await confirm(world, written)
        read = await observe(world, device_class())
        opened = GatesOpened(
            cluster=CLUSTER, namespace=namespace, uid=uid, attempt=1, state=read + 2
        )
        await confirm(world, opened)
        process.kill()
    async with running(process):
        await refused(world, wanted(2))
        allocations = [m.claims[0].allocation for m in decision.members]
        for number, allocation in enumerate(allocations):
            await observe(world, claim_of(f"train-{number}", allocation))
        await refused(world, wanted(3))
        await observe(world, claim_of("train-1", None))
        second = await allocated(world, wanted(2))
        assert held(second) == [held(decision)[1]]
        process.kill()
    async with running(process):
        await refused(world, wanted(4))
        await observe(world, claim_of("train-0", None))
        third = await allocated(world, wanted(3))
        assert held(third) == [held(decision)[0]]
