"""Gangs that ended long ago: a start with many of them, and how they leave."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts import topics
from contracts.gang import Gang
from contracts.ids import GangKey, GangUID, Namespace, NodeName
from contracts.lifecycle import GangRecord
from contracts.messages import (
    ClaimsReleased,
    DevicesAnnounced,
    GangAllocated,
    GangReleased,
    ReleaseGang,
    ReleaseOutcome,
    SubmitGang,
)
from publisher.cluster.gang_bus import GangBus
from publisher.gangs.view import GroupKey
from runtime.bus.bus import Bus
from runtime.bus.jetstream import StreamInfo, call
from runtime.errors import BusUnavailableError
from runtime.wire import Outgoing
from solver.service.retention import Retention
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
from tests.lab.soak import sized

MANY = sized(3_000, 100_000)
RETENTION = {
    "SOLVER_RETENTION_S": "1",
    # Nobody sends heartbeats here, and what ended may take long to leave.
    "SOLVER_HEARTBEAT_GRACE_S": "100000",
}


def wanted(number: int) -> Gang:
    """Ask for one device."""
    return gang(
        member(member_claim(request(count=1))),
        name=f"g{number}",
        uid=f"00000000-0000-4000-8000-{number:012}",
    )


def past_of(
    asked: Gang, outcome: ReleaseOutcome = ReleaseOutcome.COMPLETED
) -> Iterator[Outgoing]:
    """Make what a gang leaves behind that was allocated, used and ended."""
    uid, namespace = GangUID(asked.metadata.uid), Namespace(asked.metadata.namespace)
    about: dict[str, Any] = {"cluster": CLUSTER, "namespace": namespace, "uid": uid}
    submission = SubmitGang(cluster=CLUSTER, uid=uid, gang=asked)
    yield Outgoing.of(topics.SUBMISSIONS, submission)
    yield Outgoing.of(topics.COMMANDS, ReleaseGang(**about))
    released = GangReleased(**about, name=asked.metadata.name, epoch=1, outcome=outcome)
    yield Outgoing.of(topics.DECISIONS, released)
    yield Outgoing.of(topics.CONFIRMATIONS, ClaimsReleased(**about))


async def messages(bus: Bus) -> dict[str, int]:
    """Count the subjects of gangs in each stream."""
    found = {}
    for topic in topics.GANG_TOPICS:
        operation = f"STREAM.INFO.{topic.stream}"
        info = await call(bus._connection, operation, None, StreamInfo)
        found[topic.entity] = info.state.num_subjects
    return found


@pytest.fixture
async def world(bus: Bus) -> Bus:
    """A node with four devices, and many gangs that are over."""
    node = pool(*devices(4), name="a")
    await announce(
        bus, DevicesAnnounced(cluster=CLUSTER, node=NodeName("a"), pools=(node,))
    )
    await observe_class(bus)
    past = [message for n in range(MANY) for message in past_of(wanted(n))]
    await bus.publish_many(past)
    return bus


def is_of(bus: Bus, asked: Gang, kind: type) -> Callable[[], Awaitable[bool]]:
    """Make a question: is the last decision on a gang of this kind?"""

    async def ask() -> bool:
        return isinstance(await decision_on(bus, asked), kind)

    return ask


async def test_ended_gangs_leave_and_what_lives_stays(
    world: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """All that was said of them goes; a gang that holds devices is untouched."""
    lives, refused = wanted(MANY + 1), wanted(MANY + 2)
    await world.publish(
        Outgoing(
            subject=topics.SUBMISSIONS.subject(
                CLUSTER, refused.metadata.namespace, refused.metadata.uid
            ),
            data=b"{}",
        )
    )
    async with running(solver(nats_server.url, tmp_path, **RETENTION)):
        await submit(world, lives)
        decided = is_of(world, lives, GangAllocated)
        await eventually(decided, "decided beside the past", within_s=120)

        async def is_gone() -> bool:
            # Beside decisions lie the fence and the end of batches.
            return await messages(world) == {"submit": 1, "cmd": 0, "dec": 3, "conf": 0}

        await eventually(is_gone, "what ended has left", within_s=120)
        assert isinstance(await decision_on(world, lives), GangAllocated)
        again = wanted(1)
        await submit(world, again)
        lives_again = is_of(world, again, GangAllocated)
        await eventually(lives_again, "it lives another life", within_s=120)


async def test_a_publisher_that_starts_keeps_nothing_of_the_past(world: Bus) -> None:
    """But of gangs whose pods are there, and of those whose end is not confirmed."""
    shown, unconfirmed, lives = (wanted(MANY + n) for n in range(3))
    await world.publish_many([*past_of(shown), *list(past_of(unconfirmed))[:-1]])
    await submit(world, lives)
    # Lone pods, as neither has a label.
    group = GroupKey("team-a", shown.metadata.name, lone=True)
    heard: set[GroupKey] = set()

    async def changed(groups: Iterable[GroupKey]) -> None:
        heard.update(groups)

    gangs = GangBus(CLUSTER, world, changed, lambda: (group,))
    stop, cluster_read = asyncio.Event(), asyncio.Event()
    tasks = gangs.tasks(cluster_read).values()
    reading = [asyncio.ensure_future(task(stop)) for task in tasks]
    # Nothing is read before it is known whose pods are left.
    assert not heard
    cluster_read.set()
    async with asyncio.timeout(120):
        await gangs.synced.wait()
    kept = {shown.metadata.uid, unconfirmed.metadata.uid, lives.metadata.uid}
    assert {key.uid for key in gangs._records._records} == kept
    assert not gangs._past._released
    assert not gangs._past._past._gangs
    # Who ends from now on is taken in as ever.
    await world.publish_many(list(past_of(lives))[1:])
    key = GangKey(Namespace("team-a"), GangUID(lives.metadata.uid))

    def is_finished() -> bool:
        record = gangs.find(key)
        return record is not None and record.is_finished

    await eventually(is_finished, "its end is read", within_s=60)
    stop.set()
    await asyncio.gather(*reading)


def retention(bus: Bus, *, lives: bool = False) -> Retention:
    """Make what removes gangs at once."""
    return Retention(bus, CLUSTER, 1e-6, leads=lambda: True, lives=lambda _: lives)


async def record_of(bus: Bus, asked: Gang) -> GangRecord | None:
    """Fold what the streams say of a gang, as who starts now."""
    record = None
    for topic in topics.GANG_TOPICS:
        last = await bus.read_last(
            topic, CLUSTER, asked.metadata.namespace, asked.metadata.uid
        )
        if last is not None and last.message is not None:
            record = record or GangRecord.of(last.message)
            record = record.apply(last.message, last.sequence)
    return record


async def test_nothing_leaves_before_somebody_has_acted_upon_its_end(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gang whose claims nobody confirmed to be released waits for its publisher."""
    monkeypatch.setattr("solver.service.retention.LONGER", 1e9)
    *said, confirmed = past_of(wanted(1))
    await bus.publish_many(said)
    assert await retention(bus).sweep(asyncio.Event()) == 0

    await bus.publish(confirmed)
    assert await retention(bus, lives=True).sweep(asyncio.Event()) == 0
    assert await retention(bus).sweep(asyncio.Event()) == 1

    assert set((await messages(bus)).values()) == {0}


async def test_who_was_cancelled_is_known_for_longer(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pods may still wait: whoever forgot it would ask for them again."""
    await bus.publish_many(list(past_of(wanted(1), ReleaseOutcome.CANCELLED)))
    with monkeypatch.context() as day:
        day.setattr("solver.service.retention.LONGER", 1e9)
        assert await retention(bus).sweep(asyncio.Event()) == 0

    assert await retention(bus).sweep(asyncio.Event()) == 1


@pytest.mark.parametrize("done", range(5))
async def test_what_is_removed_in_part_is_over(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    """Whoever removes may end at any step: nothing lives, and the next goes on."""
    asked = wanted(1)
    await bus.publish_many(list(past_of(asked)))
    steps = 0
    purge = bus.purge

    async def end_early(stream: str, subject: str, up_to: int = 0) -> None:
        nonlocal steps
        if steps == done:
            raise BusUnavailableError(stream, "it ends here")
        steps += 1
        await purge(stream, subject, up_to)

    with monkeypatch.context() as ending:
        ending.setattr(bus, "purge", end_early)
        with contextlib.suppress(BusUnavailableError):
            await retention(bus).sweep(asyncio.Event())

    assert steps == min(done, len(topics.GANG_TOPICS))
    record = await record_of(bus, asked)
    assert record is None or (record.is_over and record.allocated is None)
    await retention(bus).sweep(asyncio.Event())
    assert set((await messages(bus)).values()) == {0}


async def test_commands_about_nobody_leave(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those about a gang that waits stay, and those that came just now."""
    waits = wanted(1)
    uid, namespace = GangUID(waits.metadata.uid), Namespace(waits.metadata.namespace)
    await submit(bus, waits)
    about: dict[str, Any] = {"cluster": CLUSTER, "namespace": namespace}
    nobody = [ReleaseGang(**about, uid=GangUID(f"nobody-{n}")) for n in range(40)]
    known = ReleaseGang(**about, uid=uid)
    await bus.publish_many([Outgoing.of(topics.COMMANDS, m) for m in (known, *nobody)])
    await retention(bus, lives=True).sweep(asyncio.Event())
    assert (await bus.usage(topics.COMMANDS.stream)).subjects == len(nobody) + 1
    monkeypatch.setattr("solver.service.retention.ORPHAN_S", 0.0)
    await retention(bus, lives=True).sweep(asyncio.Event())
    assert (await bus.usage(topics.COMMANDS.stream)).subjects == 1
    assert await bus.read_last(topics.COMMANDS, CLUSTER, namespace, uid) is not None


async def test_commands_that_nobody_can_read_leave(bus: Bus) -> None:
    """At the second look: how old one is, nobody says."""
    for name in ("one", "two"):
        subject = topics.COMMANDS.subject(CLUSTER, "team-a", name)
        await bus.publish(Outgoing(subject=subject, data=b"{}"))
    sweeping = retention(bus)
    await sweeping.sweep(asyncio.Event())
    assert (await bus.usage(topics.COMMANDS.stream)).subjects == 2
    await sweeping.sweep(asyncio.Event())
    assert (await bus.usage(topics.COMMANDS.stream)).subjects == 0
