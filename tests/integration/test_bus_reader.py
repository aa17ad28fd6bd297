"""The one reader of the bus: each service refuses and restarts in the same way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec import structs

from contracts import topics
from contracts.ids import DeviceID, GangUID, Namespace, NodeName, PoolID
from contracts.lifecycle import PUBLISHER
from contracts.messages import (
    CancelGang,
    CommandMessage,
    DeviceHealth,
    DevicesAnnounced,
    HealthJudged,
    ReleaseGang,
)
from contracts.streams import STREAMS
from publisher.cluster.gang_bus import GangBus
from publisher.config import PublisherConfig
from publisher.gangs.view import GroupKey
from publisher.service import open_service
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.announcement_limits import AnnouncementLimits
from publisher.slices.announcements import Announcements
from publisher.slices.eviction_budget import EvictionBudget
from runtime.bus.bus import Bus
from runtime.refusals import Refusals
from runtime.run import serve
from runtime.wire import Outgoing, Refused
from tests import builders
from tests.builders import decisions
from tests.builders.decisions import CLUSTER
from tests.lab.nats_server import LabServer
from tests.lab.services import eventually

NODE = NodeName("n1")
WAIT_S = 60.0


async def _make_anew(bus: Bus, stream: str) -> None:
    """Delete a stream and create it again: what it held is lost."""
    (settings,) = (s for s in STREAMS if s.name == stream)
    connection = bus._connection
    await connection.request(f"$JS.API.STREAM.DELETE.{stream}")
    await bus.ensure_streams((settings,))


async def _read_to_the_end(gang_bus: GangBus) -> None:
    """Read all that is said of gangs, the cluster having been read."""
    stop, cluster_read = asyncio.Event(), asyncio.Event()
    cluster_read.set()
    tasks = gang_bus.tasks(cluster_read).values()
    reading = [asyncio.ensure_future(task(stop)) for task in tasks]
    async with asyncio.timeout(WAIT_S):
        await gang_bus.synced.wait()
    stop.set()
    await asyncio.gather(*reading)


async def test_the_reader_that_opens_gates_checks_messages_against_their_subjects(
    bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    """A decision that came on another gang's subject decides nothing."""
    changed: list[GroupKey] = []

    async def note(groups: Iterable[GroupKey]) -> None:
        changed.extend(groups)

    decision = decisions.gang_allocated()
    another = topics.DECISIONS.subject(CLUSTER, decision.namespace, "another")
    data = topics.DECISIONS.codec.encode(decision)
    await bus.publish(Outgoing(subject=another, data=data))
    gang_bus = GangBus(CLUSTER, bus, note, tuple)
    await _read_to_the_end(gang_bus)

    assert capsys.readouterr().out.count("message.refused") == 1
    assert not changed
    assert not list(gang_bus.groups())


async def test_a_publisher_that_starts_reads_the_command_that_its_own_came_after(
    bus: Bus,
) -> None:
    """Somebody cancelled a gang while the publisher gave it up: it stays cancelled."""

    async def ignore(_: Iterable[GroupKey]) -> None:
        return

    submission, decision = decisions.submission(), decisions.gang_allocated()
    cancelled = CancelGang(
        cluster=CLUSTER, namespace=decision.namespace, uid=submission.uid
    )
    given_up = structs.replace(cancelled, reason=f"{PUBLISHER}a pod is gone")
    await bus.publish(Outgoing.of(topics.SUBMISSIONS, submission))
    for command in (cancelled, given_up):
        await bus.publish(Outgoing.of(topics.COMMANDS, command))
    gang_bus = GangBus(CLUSTER, bus, ignore, tuple)
    await _read_to_the_end(gang_bus)

    (group,) = gang_bus.groups()
    (record,) = gang_bus.of_group(group)
    assert record.command == cancelled


async def test_announcements_of_a_stream_made_anew_are_not_believed_for_ever(
    bus: Bus,
) -> None:
    """Inventories must be said again; a taint stays until its node judges anew."""
    announced = AnnouncedPools(lambda *_: True, EvictionBudget(100.0))
    announcements = Announcements(CLUSTER, bus, announced, AnnouncementLimits())
    pool = builders.pool(*builders.devices(2), name=NODE)
    (driver, device) = pool.driver, pool.devices[0].name
    sick = DeviceHealth(
        device=DeviceID(driver, pool.name, device),
        verdict="Unhealthy",
        taints=(builders.taint(),),
    )
    inventory = DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(pool,))
    health = HealthJudged(cluster=CLUSTER, node=NODE, devices=(sick,))
    await bus.publish(Outgoing.of(topics.INVENTORIES, inventory))
    await bus.publish(Outgoing.of(topics.HEALTH, health))
    stop = asyncio.Event()
    tasks = [
        asyncio.ensure_future(task(stop)) for task in announcements.tasks().values()
    ]
    pool_id = PoolID(driver, pool.name)
    await eventually(lambda: announced.unhealthy_of(pool_id), "the taint is known")

    await _make_anew(bus, "HEALTH")
    await _make_anew(bus, "INV")
    await eventually(lambda: not announced.of_node(NODE), "the inventory is forgotten")
    assert not announced.has_heard(NODE), "its slices stay as they are"
    await bus.publish(Outgoing.of(topics.INVENTORIES, inventory))
    await eventually(lambda: announced.of_node(NODE), "it is announced again")
    assert announced.unhealthy_of(pool_id), "nobody has said that it is well"
    stop.set()
    await asyncio.gather(*tasks)


async def test_the_folder_sink_ends_when_decisions_are_lost(
    bus: Bus, nats_server: LabServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a cluster the decisions are the truth about what is taken."""
    folder = str(tmp_path / "manifests")
    config = PublisherConfig(cluster=CLUSTER, servers=(nats_server.url,), folder=folder)
    log: list[str] = []

    def logged(text: str) -> bool:
        log.append(capsys.readouterr().out)
        return text in "".join(log)

    await bus.publish(Outgoing.of(topics.DECISIONS, decisions.gang_pending()))
    stop = asyncio.Event()
    running = asyncio.ensure_future(
        serve("publisher", lambda: open_service(config), stop)
    )
    await eventually(lambda: logged("stream=DEC"), "decisions are read")
    await _make_anew(bus, "DEC")
    async with asyncio.timeout(WAIT_S):
        assert await running == 1
    assert logged("the stream DEC has lost messages")


async def test_refused_messages_are_counted_named_and_logged_alike(
    bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    """One event, one level, one form, whether bytes, type or subject are wrong."""
    command = ReleaseGang(cluster=CLUSTER, namespace=Namespace("ns"), uid=GangUID("u"))
    data = topics.COMMANDS.codec.encode(command)
    for uid, body in {"a": b"{", "b": b'{"type": "NodeSeen"}', "c": data}.items():
        subject = topics.COMMANDS.subject(CLUSTER, "ns", uid)
        await bus.publish(Outgoing(subject=subject, data=body))
    zipped = topics.COMMANDS.subject(CLUSTER, "ns", "d")
    headers = {"Content-Encoding": "zstd"}
    await bus.publish(Outgoing(subject=zipped, data=b"no zstd", headers=headers))
    await bus.publish(Outgoing.of(topics.COMMANDS, command))

    refusals = Refusals()
    stop = asyncio.Event()
    refused: list[Refused] = []
    messages: list[CommandMessage | None] = []
    batches = bus.read(topics.COMMANDS, CLUSTER, stop=stop, refusals=refusals)
    async with asyncio.timeout(WAIT_S):
        async for batch in batches:
            refused += batch.refused
            messages += [incoming.message for incoming in batch.messages]
            if batch.caught_up:
                stop.set()

    assert messages == [command]
    assert sorted(r.subject[-1] for r in refused) == ["a", "b", "c", "d"]
    assert refusals.counts == {"cmd": 4}
    lines = [
        line
        for line in capsys.readouterr().out.split("\n")
        if "message.refused" in line
    ]
    assert len(lines) == 4
    assert all("warning" in line for line in lines)


async def test_what_a_topic_holds_is_read_once_and_no_longer(bus: Bus) -> None:
    """`read_existing` ends by itself once it has caught up, with nothing, too."""
    async with asyncio.timeout(WAIT_S):
        batches = [batch async for batch in bus.read_existing(topics.COMMANDS, CLUSTER)]
    assert not any(batch.messages for batch in batches)
    assert batches[-1].caught_up
