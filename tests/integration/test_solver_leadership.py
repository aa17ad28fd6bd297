"""Solvers as processes on a real bus: they take over, fence and replay."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from contracts import topics
from contracts.fence import EpochClaimed
from contracts.messages import GangAllocated
from contracts.solves import SolveDecided
from runtime.bus.bus import Bus
from runtime.errors import PublishRefusedError
from runtime.wire import Incoming, Outgoing
from solver.allocate import allocate
from solver.decision import DECISION
from solver.record import sha_of
from solver.replay import replay
from solver.service.lead import Leadership
from solver.service.ledger import Ledger
from tests.builders.problems import problem_of, snapshot_of
from tests.lab.nats_server import LabServer
from tests.lab.records import recorded_solve
from tests.lab.services import CLUSTER, decision_on, eventually, running, solver, submit
from tests.lab.two_nodes import inventory, is_decided, two_nodes, wanted


@pytest.fixture
async def world(bus: Bus) -> Bus:
    """Two nodes with four devices each, and their class."""
    await two_nodes(bus)
    return bus


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
