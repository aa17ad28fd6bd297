"""The solver as a process: a large gang is promised a start, and small ones fill in."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from contracts import topics
from contracts.allocation import Rule
from contracts.gang import Gang, Member
from contracts.ids import GangUID, Namespace, NodeName
from contracts.messages import (
    DevicesAnnounced,
    ExpectedStart,
    GangAllocated,
    GangPending,
    ReleaseGang,
)
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests.builders import devices, gang, member, member_claim, pool, request
from tests.lab.nats_server import LabServer
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

HOUR_S = 3600


def asking(number: int, pods: int = 1, duration: str = "") -> Gang:
    """Ask for whole nodes."""
    return gang(
        member(member_claim(request(count=8)), count=pods),
        name=f"g{number}",
        uid=f"00000000-0000-4000-8000-{number:012}",
        duration=duration,
        hold=True,
    )


async def is_in(bus: Bus, asked: Gang) -> bool:
    return isinstance(await decision_on(bus, asked), GangAllocated)


async def expected_of(bus: Bus, asked: Gang) -> ExpectedStart | None:
    decision = await decision_on(bus, asked)
    return decision.expected if isinstance(decision, GangPending) else None


async def is_barred(bus: Bus, asked: Gang) -> bool:
    decision = await decision_on(bus, asked)
    if not isinstance(decision, GangPending):
        return False
    return Rule.RESERVED in {reason.rule for reason in decision.reasons}


async def release(bus: Bus, asked: Gang) -> None:
    namespace = Namespace(asked.metadata.namespace)
    uid = GangUID(asked.metadata.uid)
    message = ReleaseGang(cluster=CLUSTER, namespace=namespace, uid=uid)
    subject = topics.COMMANDS.subject(CLUSTER, namespace, uid)
    data = topics.COMMANDS.codec.encode(message)
    await bus.publish(Outgoing(subject=subject, data=data))


async def test_a_large_gang_is_promised_a_start_and_small_ones_fill_in(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """The promise outlives the solver that made it, and is kept before its time."""
    for name in ("a", "b"):
        content = (pool(*devices(8), name=name),)
        announced = DevicesAnnounced(
            cluster=CLUSTER, node=NodeName(name), pools=content
        )
        await announce(bus, announced)
    await observe_class(bus)
    runs, large = asking(1, duration="1h"), asking(2, pods=2)
    endless, longer, short = asking(3), asking(4, duration="2h"), asking(5, 1, "30m")
    first = solver(nats_server.url, tmp_path, SOLVER_PATIENCE="1s")
    async with running(first):
        await submit(bus, runs)
        await eventually(partial(is_in, bus, runs), "one runs", within_s=60)
        await submit(bus, large)
        await eventually(partial(expected_of, bus, large), "a start", within_s=30)
        promised = await expected_of(bus, large)
        assert promised is not None
        assert promised.proven
        assert promised.because == "team-a/g1 must end first"
        assert promised.solve
        in_s = (datetime.fromisoformat(promised.time) - datetime.now(UTC)).seconds
        assert HOUR_S - 60 < in_s <= HOUR_S
        for each in (endless, longer):
            await submit(bus, each)
            await eventually(partial(is_barred, bus, each), "the node is kept")
        await submit(bus, short)
        await eventually(partial(is_in, bus, short), "it ends before", within_s=30)
        first.kill()
    second = solver(nats_server.url, tmp_path, SOLVER_PATIENCE="never")
    async with running(second):
        await release(bus, short)
        late = asking(6)
        await submit(bus, late)
        await eventually(partial(is_barred, bus, late), "it is kept yet", within_s=60)
        again = await expected_of(bus, large)
        assert again is not None
        assert again.time == promised.time
        await release(bus, runs)
        await eventually(partial(is_in, bus, large), "it starts early", within_s=30)
        assert not await is_in(bus, endless)
        assert second.stop() == 0


RUNS, NAMESPACES, ANSWERED_S = 200, 16, 5.0


async def test_decisions_go_on_beside_looks_at_many_reservations(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """What runs ends at hundreds of times, and somebody waits in each namespace.

    A look at that took 25 s, in front of all decisions.
    """
    content = (pool(*devices(8), name="a"),)
    await announce(
        bus, DevicesAnnounced(cluster=CLUSTER, node=NodeName("a"), pools=content)
    )
    await observe_class(bus)
    bare = Member(name="worker")
    holds = asking(1, duration="900h")
    process = solver(nats_server.url, tmp_path, SOLVER_PATIENCE="0s")
    async with running(process):
        await submit(bus, holds)
        await eventually(partial(is_in, bus, holds), "it holds all", within_s=60)
        for number in range(RUNS):
            uid = f"00000000-0000-4000-8000-{1000 + number:012}"
            lasts = f"{number + 10}m"
            await submit(bus, gang(bare, name=f"r{number}", uid=uid, duration=lasts))
        waits = [asking(2000 + number, duration="1h") for number in range(NAMESPACES)]
        waits = [
            replace(each, metadata=replace(each.metadata, namespace=f"team-{number}"))
            for number, each in enumerate(waits)
        ]
        for each in waits:
            await submit(bus, each)
        await eventually(partial(expected_of, bus, waits[0]), "a start", within_s=60)
        for number in range(5):
            uid = f"00000000-0000-4000-8000-{3000 + number:012}"
            asked, began_s = gang(bare, name=f"p{number}", uid=uid), monotonic()
            await submit(bus, asked)
            await eventually(partial(is_in, bus, asked), "decided", within_s=60)
            assert monotonic() - began_s < ANSWERED_S
            await asyncio.sleep(1)
        assert process.stop() == 0
