"""The solver as a process: who must go is told, once, and what is freed is kept."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from contracts import topics
from contracts.gang import Gang
from contracts.ids import GangKey, GangUID, Namespace, NodeName
from contracts.lifecycle import PREEMPTED, PUBLISHER
from contracts.messages import (
    CancelGang,
    DevicesAnnounced,
    GangAllocated,
    GangPending,
    ObjectObserved,
    Preemption,
)
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from solver.replay import replay
from tests.builders import DEVICE_CLASS, devices, gang, member, pool, request
from tests.builders import member_claim as claim
from tests.builders.queues import cluster_queue, flavor, local_queue
from tests.lab.nats_server import LabServer
from tests.lab.records import recorded_solve
from tests.lab.services import (
    CLUSTER,
    announce,
    decision_on,
    eventually,
    observe_class,
    running,
    solver,
    submit,
)

NODES = ("a", "b")


def asking(number: int, priority: int = 0) -> Gang:
    """Ask for a whole node."""
    return gang(
        member(claim(request(count=8))),
        name=f"g{number}",
        uid=f"00000000-0000-4000-8000-{number:012}",
        priority=priority,
        hold=True,
    )


def key_of(asked: Gang) -> GangKey:
    return GangKey(Namespace(asked.metadata.namespace), GangUID(asked.metadata.uid))


async def observe_queue(bus: Bus) -> None:
    """Let all gangs be of one queue, in which the lower go after a second."""
    made = cluster_queue(
        "all",
        {"any": {DEVICE_CLASS: 99}},
        preemption={"withinClusterQueue": "LowerPriority"},
    )
    made["metadata"]["annotations"] = {"moorings.dev/preemption-delay": "1s"}
    for raw in (flavor("any"), made, local_queue("team-a", "all")):
        meta = raw["metadata"]
        key = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
        seen = ObjectObserved(cluster=CLUSTER, kind=raw["kind"], key=key, object=raw)
        await bus.publish(Outgoing.of(topics.STATE, seen))


async def is_in(bus: Bus, asked: Gang) -> bool:
    return isinstance(await decision_on(bus, asked), GangAllocated)


async def told(bus: Bus, *asked: Gang) -> list[tuple[Gang, Preemption]]:
    """List who must go, with for whom."""
    found = []
    for each in asked:
        decision = await decision_on(bus, each)
        if isinstance(decision, GangAllocated) and decision.preempted is not None:
            found.append((each, decision.preempted))
    return found


async def end(bus: Bus, asked: Gang) -> None:
    """End a gang as its publisher does that was told."""
    key = key_of(asked)
    message = CancelGang(
        cluster=CLUSTER,
        namespace=key.namespace,
        uid=key.uid,
        reason=f"{PUBLISHER}{PREEMPTED}: for team-a/g3",
        recreate=True,
    )
    await bus.publish(Outgoing.of(topics.COMMANDS, message))


async def test_one_goes_and_its_place_is_kept_over_a_change_of_leaders(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    for name in NODES:
        content = (pool(*devices(8), name=name),)
        message = DevicesAnnounced(cluster=CLUSTER, node=NodeName(name), pools=content)
        await announce(bus, message)
    await observe_class(bus)
    await observe_queue(bus)
    old, young, high, again = asking(1), asking(2), asking(3, priority=9), asking(4)
    first = solver(nats_server.url, tmp_path, SOLVER_PATIENCE="never")
    async with running(first):
        for each in (old, young):
            await submit(bus, each)
            await eventually(partial(is_in, bus, each), "one runs", within_s=60)
        await submit(bus, high)
        await eventually(partial(told, bus, old, young), "somebody must go")
        ((victim, said),) = await told(bus, old, young)
        assert (victim, said.preemptor, said.name) == (young, key_of(high), "g3")
        assert said.victims == (key_of(young),)
        # What is promised came with it, and its solve is recorded.
        decision = await decision_on(bus, high)
        assert isinstance(decision, GangPending)
        assert decision.expected is not None
        assert decision.expected.time == said.until
        subject = topics.SOLVES.subject(CLUSTER, decision.expected.solve)
        result, _ = replay(await recorded_solve(bus, subject))
        assert result.same_bytes is True
        first.kill()
    second = solver(nats_server.url, tmp_path, SOLVER_PATIENCE="never")
    async with running(second):
        await end(bus, young)
        await submit(bus, again)
        await eventually(partial(is_in, bus, high), "what is freed is kept", 60)
        await asyncio.sleep(6)
        assert not await told(bus, old)
        assert not await is_in(bus, again)
