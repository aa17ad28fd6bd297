"""The solver as a process on a real bus: decides, refuses, takes over, replays."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from contracts import topics
from contracts.fence import EpochClaimed
from contracts.gang import Gang
from contracts.ids import GangUID, Namespace, NodeName
from contracts.messages import (
    CancelGang,
    DevicesAnnounced,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    NodeSeen,
    ReleaseGang,
)
from contracts.solves import SolveDecided, SolveMessage, SolveOpened
from runtime.bus.bus import Bus
from runtime.errors import PublishRefusedError
from runtime.wire import Incoming, Outgoing
from solver.allocate import allocate
from solver.decision import DECISION
from solver.record import Recorded, sha_of
from solver.replay import replay
from solver.service.lead import Leadership
from solver.service.ledger import Ledger
from tests.builders import devices, gang, member, member_claim, pool, request
from tests.builders.problems import problem_of, snapshot_of
from tests.lab.nats_server import LabServer
from tests.lab.services import (
    CLUSTER,
    Process,
    announce,
    decision_on,
    eventually,
    observe_class,
    running,
    solver,
    submit,
)


def inventory(node: str, count: int = 4) -> DevicesAnnounced:
    content = pool(*devices(count), name=node)
    return DevicesAnnounced(cluster=CLUSTER, node=NodeName(node), pools=(content,))


def wanted(number: int, pods: int = 1, count: int = 1) -> Gang:
    claim = member_claim(request(count=count))
    return gang(
        member(claim, count=pods),
        name=f"g{number}",
        uid=f"00000000-0000-4000-8000-{number:012}",
    )


async def is_decided(bus: Bus, asked: Gang, kind: type) -> bool:
    return isinstance(await decision_on(bus, asked), kind)


@pytest.fixture
async def world(bus: Bus) -> Bus:
    """Two nodes with four devices each, and their class."""
    await announce(bus, inventory("a"), inventory("b"))
    await observe_class(bus)
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


FENCE = b'{"type":"EpochClaimed","cluster":"local","holder":"x","epoch":%d,"leaseS":%d}'
FORGED = (
    b'{"type":"SolveOpened","cluster":"local","solve":"y","problem":"../x","epoch":1,'
    b'"version":"1","platform":"p","openedAt":""}'
)
HOSTILE = (
    ("fence.v1.local", b"{"),
    ("fence.v1.local", FENCE % (2**52, 10**12)),
    ("fence.v1.local", FENCE % (2**53 - 1, 2)),
    ("solve.v1.local.x", b"{"),
    ("solve.v1.local.y", FORGED),
    ("submit.v1.local.ns." + "u" * 760, b"{"),
    ("submit.v1.local.ns." + "u" * 300, b"{"),
    ("submit.v1.local.ns.u=41", b"{"),
)


@pytest.mark.parametrize("last", [2, len(HOSTILE)])
async def test_what_cannot_be_read_stops_no_solver(
    world: Bus, nats_server: LabServer, tmp_path: Path, last: int
) -> None:
    """Whoever stored it: a solver that starts leads, decides, and a standby follows."""
    for subject, body in HOSTILE[:last]:
        await world.publish(Outgoing(subject=subject, data=body))
    one, two = (solver(nats_server.url, tmp_path, name) for name in ("one", "two"))
    async with running(one, two):
        asked = wanted(1)
        await submit(world, asked)
        await eventually(lambda: is_decided(world, asked, GangAllocated), "decided")
        assert one.stop() == 0
        again = wanted(2)
        await submit(world, again)
        await eventually(lambda: is_decided(world, again, GangAllocated), "by another")
        assert two.stop() == 0


async def test_a_standby_takes_over_and_the_deposed_publishes_nothing(
    world: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    one = solver(nats_server.url, tmp_path, "one")
    two = solver(nats_server.url, tmp_path, "two")
    async with running(one):
        asked = wanted(1)
        await submit(world, asked)
        await eventually(lambda: is_decided(world, asked, GangAllocated), "by one")
        fence = await world.read_last(topics.FENCE, CLUSTER)
        assert fence is not None
        deposed = Leadership(world, CLUSTER, "one", 2.0)
        deposed.note_fence(fence)
        deposed.epoch = 1
        deposed.begin()
        async with running(two):
            await asyncio.sleep(0.5)
            one.kill()
            later = wanted(2)
            await submit(world, later)
            await eventually(lambda: is_decided(world, later, GangAllocated), "by two")
            decision = await decision_on(world, later)
            assert isinstance(decision, GangAllocated)
            assert decision.epoch == 2
            with pytest.raises(PublishRefusedError):
                await deposed.publish([])
            assert not deposed.leads


async def test_what_was_decided_in_an_epoch_that_is_over_is_not_published(
    world: Bus,
) -> None:
    """Not even by who has read the successor's fence, or leads again by now."""

    async def last_claim() -> Incoming[EpochClaimed]:
        fence = await world.read_last(topics.FENCE, CLUSTER)
        assert fence is not None
        return fence

    one, two = (Leadership(world, CLUSTER, name, 0.0) for name in ("one", "two"))
    assert await one.tend()
    one.begin()
    assert await two.tend()
    one.note_fence(await last_claim())
    with pytest.raises(PublishRefusedError, match=r"epoch 1.* is over"):
        await one.publish([])
    found = (await last_claim()).message
    assert found is not None
    assert (found.holder, found.epoch) == ("two", 2)

    assert await one.tend()
    with pytest.raises(PublishRefusedError, match=r"epoch 1.* is over"):
        await one.publish([])
    one.begin()
    await one.publish([])
    found = (await last_claim()).message
    assert found is not None
    assert (found.holder, found.epoch) == ("one", 3)


async def test_an_open_manifest_is_solved_to_the_same_bytes(
    world: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """What a leader recorded and did not answer, the next one answers."""
    asked = wanted(1, 2, 2)
    nodes = {n: inventory(n).pools for n in ("a", "b")}
    snapshot = snapshot_of(nodes, [asked])
    problem = problem_of(snapshot)
    opened = await Ledger(world, CLUSTER).open(problem, epoch=1)
    process = solver(nats_server.url, tmp_path)
    async with running(process):

        async def is_closed() -> bool:
            found = await world.last(
                "SOLVE", topics.SOLVES.subject(CLUSTER, opened.solve)
            )
            assert found is not None
            return isinstance(topics.SOLVES.codec.decode(found.data), SolveDecided)

        await eventually(is_closed, "the manifest is answered")
    found = await world.last("SOLVE", topics.SOLVES.subject(CLUSTER, opened.solve))
    assert found is not None
    closed = topics.SOLVES.codec.decode(found.data)
    assert isinstance(closed, SolveDecided)
    assert closed.decision == sha_of(DECISION.encode(allocate(problem)))


async def test_a_recorded_solve_replays_to_the_same_bytes(
    world: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    asked = wanted(1, 2, 2)
    async with running(solver(nats_server.url, tmp_path)):
        await submit(world, asked)
        await eventually(lambda: is_decided(world, asked, GangAllocated), "decided")
        decision = await decision_on(world, asked)
        assert isinstance(decision, GangAllocated)
        subject = topics.SOLVES.subject(CLUSTER, decision.solve)

        async def is_closed() -> bool:
            found = await world.last("SOLVE", subject)
            return found is not None and b"SolveDecided" in found.data

        await eventually(is_closed, "recorded")
    recorded = await recorded_solve(world, subject)
    result, again = replay(recorded)
    assert result.same_bytes is True
    assert again.gangs[0].members == decision.members


async def recorded_solve(bus: Bus, subject: str) -> Recorded:
    """Read both messages of a solve and its blobs."""
    stop = asyncio.Event()
    found: list[SolveMessage] = []
    async for page in bus.follow("SOLVE", [subject], stop, start="all"):
        found.extend(topics.SOLVES.codec.decode(item.data) for item in page.messages)
        if page.synced:
            break
    opened, decided = found[0], found[1]
    assert isinstance(opened, SolveOpened)
    assert isinstance(decided, SolveDecided)
    recorded = await Ledger(bus, CLUSTER).fetch(opened)
    return Recorded(
        opened=opened,
        decided=decided,
        root=recorded.root,
        pages=recorded.pages,
        decision=await bus.get_blob(decided.decision),
    )


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
