"""The solver as a process on a real bus: decides, refuses, waits for nodes."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from contracts import topics
from contracts.ids import GangUID, Namespace, NodeName
from contracts.messages import (
    CancelGang,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    NodeSeen,
    ReleaseGang,
)
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests.builders import gang, member, member_claim, request
from tests.lab.nats_server import LabServer
from tests.lab.services import (
    CLUSTER,
    Process,
    decision_on,
    eventually,
    running,
    solver,
    submit,
)
from tests.lab.two_nodes import is_decided, two_nodes, wanted


@pytest.fixture
async def world(bus: Bus) -> Bus:
    """Two nodes with four devices each, and their class."""
    await two_nodes(bus)
    return bus


async def command(bus: Bus, message: CancelGang | ReleaseGang) -> None:
    subject = topics.COMMANDS.subject(CLUSTER, message.namespace, message.uid)
    await bus.publish(
        Outgoing(subject=subject, data=topics.COMMANDS.codec.encode(message))
    )


async def test_gangs_are_decided_released_and_decided_again(
    world: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """What does not fit waits with a reason, and is in once something is released."""
    first, second, third = wanted(1, 2, 4), wanted(2, 1, 4), wanted(3, 1, 9)
    async with running(solver(nats_server.url, tmp_path)):
        await submit(world, first)
        await eventually(lambda: is_decided(world, first, GangAllocated), "first in")
        await submit(world, second)
        await submit(world, third)
        await eventually(lambda: is_decided(world, second, GangPending), "second waits")
        waiting = await decision_on(world, second)
        assert isinstance(waiting, GangPending)
        assert waiting.reasons[0].rule == "DevicesTaken"
        namespace = Namespace(first.metadata.namespace)
        uid = GangUID(first.metadata.uid)
        await command(world, ReleaseGang(cluster=CLUSTER, namespace=namespace, uid=uid))
        await eventually(lambda: is_decided(world, first, GangReleased), "first ends")
        await eventually(lambda: is_decided(world, second, GangAllocated), "second in")
        lost = await decision_on(world, third)
        assert isinstance(lost, GangPending)
        assert lost.reasons[0].rule == "NoCandidate"


async def test_a_uid_is_one_namespace_s_alone(
    world: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Gangs of one uid are decided apart, and who may end one ends no other."""
    ours, theirs = (
        gang(
            member(member_claim(request(count=4)), count=1),
            name="train",
            namespace=namespace,
            uid="00000000-0000-4000-8000-000000000001",
        )
        for namespace in ("team-a", "team-b")
    )
    async with running(solver(nats_server.url, tmp_path)):
        for each in (ours, theirs):
            await submit(world, each)
        for each in (ours, theirs):
            await eventually(partial(is_decided, world, each, GangAllocated), "in")
        decided = [await decision_on(world, each) for each in (ours, theirs)]
        allocated = [each for each in decided if isinstance(each, GangAllocated)]
        assert len({each.members[0].node for each in allocated}) == 2
        assert len({each.members[0].claims[0].ref.uid for each in allocated}) == 2
        cancelled = CancelGang(
            cluster=CLUSTER,
            namespace=Namespace(ours.metadata.namespace),
            uid=GangUID(ours.metadata.uid),
        )
        await command(world, cancelled)
        await eventually(lambda: is_decided(world, ours, GangReleased), "ours ends")
        later = wanted(2, 2, 4)
        await submit(world, later)
        await eventually(lambda: is_decided(world, later, GangPending), "they hold")
        assert isinstance(await decision_on(world, theirs), GangAllocated)


async def test_bad_messages_change_nothing_and_are_answered(
    world: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """A thousand malformed messages on each public subject; the service goes on."""
    process = solver(nats_server.url, tmp_path)
    bodies = [
        b"",
        b"{",
        b"[]",
        b'{"type":"Nope"}',
        b"\xff\xfe",
        b'{"type":"SubmitGang"}',
    ]
    async with running(process):
        for prefix in ("inv.v1.local", "health.v1.local", "hb.v1.local"):
            await world.publish_many(
                [
                    Outgoing(subject=f"{prefix}.x{i}", data=bodies[i % len(bodies)])
                    for i in range(1000)
                ]
            )
        for prefix in ("submit.v1.local.ns", "cmd.v1.local.ns", "conf.v1.local.ns"):
            await world.publish_many(
                [
                    Outgoing(subject=f"{prefix}.x{i}", data=bodies[i % len(bodies)])
                    for i in range(1000)
                ]
            )
        await world.publish_many(
            [
                Outgoing(
                    subject=f"state.v1.local.DeviceClass.x{i}",
                    data=bodies[i % len(bodies)],
                )
                for i in range(1000)
            ]
        )
        asked = wanted(1)
        await submit(world, asked)
        await eventually(lambda: is_decided(world, asked, GangAllocated), "decided")

        async def all_answered() -> bool:
            last = topics.DECISIONS.subject(CLUSTER, Namespace("ns"), GangUID("x999"))
            return await world.last("DEC", last) is not None

        await eventually(all_answered, "the last malformed submission is rejected")
        subject = topics.DECISIONS.subject(CLUSTER, Namespace("ns"), GangUID("x1"))
        found = await world.last("DEC", subject)
        assert found is not None
        answer = topics.DECISIONS.codec.decode(found.data)
        assert isinstance(answer, GangRejected)
        assert answer.reasons[0].message
        assert process.stop() == 0
    refused = process.log().count("message.refused")
    assert refused >= 5000, refused


async def test_a_restart_of_nats_makes_no_node_away(
    world: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """The heartbeats are forgotten with the server; every node gets the full grace."""
    process = solver(nats_server.url, tmp_path, SOLVER_HEARTBEAT_GRACE_S="4")
    async with running(process):
        beats = asyncio.create_task(beat(world))
        first = wanted(1)
        await submit(world, first)
        await eventually(lambda: is_decided(world, first, GangAllocated), "before")
        beats.cancel()
        nats_server.kill()
        await asyncio.sleep(2.0)
        nats_server.start()
        beats = asyncio.create_task(beat(world))
        second = wanted(2)
        await submit(world, second)
        await eventually(lambda: is_decided(world, second, GangAllocated), "after")
        await asyncio.sleep(5.0)
        beats.cancel()
    assert "node.lost" not in process.log()


async def test_a_silent_node_is_away_and_comes_back(
    world: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    process = solver(nats_server.url, tmp_path, SOLVER_HEARTBEAT_GRACE_S="2")
    async with running(process):
        await eventually(lambda: process.log().count("node.lost") == 2, "silence")
        asked = wanted(1)
        await submit(world, asked)
        await eventually(lambda: is_decided(world, asked, GangPending), "nobody there")
        waiting = await decision_on(world, asked)
        assert isinstance(waiting, GangPending)
        assert waiting.reasons[0].rule == "NodeUnavailable"
        beats = asyncio.create_task(beat(world))
        await eventually(lambda: is_decided(world, asked, GangAllocated), "back")
        beats.cancel()


async def beat(bus: Bus) -> None:
    """Send heartbeats of both nodes."""
    while True:
        for node in ("a", "b"):
            message = NodeSeen(cluster=CLUSTER, node=NodeName(node))
            await bus.publish(
                Outgoing(
                    subject=topics.HEARTBEATS.subject(CLUSTER, NodeName(node)),
                    data=topics.HEARTBEATS.codec.encode(message),
                )
            )
        await asyncio.sleep(0.5)


def test_a_wrong_variable_is_refused_by_name(tmp_path: Path) -> None:
    process = Process("solver", tmp_path / "log", SOLVER_LEAES_S="3")
    process.start()
    assert process._process is not None
    assert process._process.wait(timeout=20) == 2
    assert "SOLVER_LEAES_S" in process.log()
