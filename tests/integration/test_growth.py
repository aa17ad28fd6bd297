"""Gangs on a real bus, without Kubernetes, that get more pods while they run."""

from __future__ import annotations

from pathlib import Path

from contracts import topics
from contracts.gang import Gang
from contracts.ids import GangUID, Namespace
from contracts.messages import (
    AllocationWritten,
    ClaimsReleased,
    GangAllocated,
    GangReleased,
    ReleaseGang,
)
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests.builders import gang, member, member_claim, request
from tests.lab.nats_server import LabServer
from tests.lab.publishing import manifests, publisher
from tests.lab.services import (
    CLUSTER,
    announce,
    confirmation_on,
    decision_on,
    eventually,
    running,
    solver,
    submit,
)
from tests.lab.two_nodes import inventory, is_decided, two_nodes, wanted


def elastic(number: int, pods: int, least: int) -> Gang:
    """Ask for pods with one device each, of which some are enough."""
    return gang(
        member(member_claim(request()), count=pods, min_count=least),
        name=f"g{number}",
        uid=f"00000000-0000-4000-8000-{number:012}",
    )


async def release(bus: Bus, asked: Gang) -> None:
    message = ReleaseGang(
        cluster=CLUSTER,
        namespace=Namespace(asked.metadata.namespace),
        uid=GangUID(asked.metadata.uid),
    )
    await bus.publish(Outgoing.of(topics.COMMANDS, message))


async def has_pods(bus: Bus, asked: Gang, count: int) -> bool:
    decision = await decision_on(bus, asked)
    return isinstance(decision, GangAllocated) and len(decision.members) == count


async def is_written(bus: Bus, asked: Gang) -> bool:
    """Whether the last decision on a gang is confirmed."""
    decision = await decision_on(bus, asked)
    assert isinstance(decision, GangAllocated)
    confirmed = await confirmation_on(bus, asked)
    return (
        isinstance(confirmed, AllocationWritten)
        and confirmed.attempt == decision.attempt
    )


async def is_gone(bus: Bus, asked: Gang) -> bool:
    return isinstance(await confirmation_on(bus, asked), ClaimsReleased)


async def test_a_gang_grows_across_restarts_and_its_claims_with_it(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """What is freed while no solver runs is found by the next; nothing moves."""
    folder = tmp_path / "manifests"
    small, growing = wanted(1, 2), elastic(2, 9, 1)
    process = solver(nats_server.url, tmp_path)
    await two_nodes(bus)
    async with running(process), publisher(nats_server, folder, cluster=CLUSTER):
        await submit(bus, small)
        await eventually(lambda: is_decided(bus, small, GangAllocated), "one is in", 60)
        await submit(bus, growing)
        await eventually(lambda: has_pods(bus, growing, 6), "six of nine")
        await eventually(lambda: is_written(bus, growing), "claims are written")
        before = await decision_on(bus, growing)
        assert isinstance(before, GangAllocated)
        written = manifests(folder)

        process.kill()
        await release(bus, small)
        process.start()
        await eventually(lambda: has_pods(bus, growing, 8), "two more", 60)
        await eventually(lambda: is_written(bus, growing), "their claims are written")
        await announce(bus, inventory("c", 2))
        await eventually(lambda: has_pods(bus, growing, 9), "all")
        await eventually(lambda: is_written(bus, growing), "all claims are written")

        after = await decision_on(bus, growing)
        assert isinstance(after, GangAllocated)
        assert after.members[:6] == before.members
        assert (after.growing, after.kept) == ({}, {"worker": 8})
        found = manifests(folder)
        assert len(found) == 9
        for name in (name for name in written if name.startswith("g2-")):
            assert found[name]["status"] == written[name]["status"]

        # One that ends while it may be growing leaves nothing taken.
        last = wanted(3, 10)
        await submit(bus, last)
        await announce(bus, inventory("c", 1))
        await release(bus, growing)
        await announce(bus, inventory("c", 2))
        await eventually(lambda: is_decided(bus, last, GangAllocated), "all are free")
        assert isinstance(await decision_on(bus, growing), GangReleased)
        await eventually(lambda: is_gone(bus, growing), "its claims go")
        assert not [name for name in manifests(folder) if name.startswith("g2-")]
