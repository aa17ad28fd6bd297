"""Following streams of a real nats-server, through crashes too."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from contracts.ids import ClusterName, NodeName
from contracts.messages import DevicesAnnounced
from contracts.topics import INVENTORIES
from runtime import metrics
from runtime.bus import consumer, follower
from runtime.bus.bus import Bus
from runtime.bus.follower import Start, follow
from runtime.bus.jetstream import call
from runtime.wire import BusSettings, Outgoing, Received
from tests.lab.nats_server import LabServer

KEYS = 300


def state(key: object, data: bytes = b"") -> Outgoing:
    return Outgoing(subject=f"state.v1.c.k.{key}", data=data)


async def synced(bus: Bus, start: Start = "last_per_subject") -> list[Received]:
    """Read until synced."""
    stop = asyncio.Event()
    got: list[Received] = []
    async for page in bus.follow("STATE", ["state.v1.c.>"], stop, start=start):
        got.extend(page.messages)
        if page.synced:
            stop.set()
    return got


async def test_an_empty_stream_is_synced_at_once(bus: Bus) -> None:
    """Nothing existed, so everything was delivered."""
    assert await synced(bus) == []


@pytest.mark.parametrize("start", ["last_per_subject", "all", 1])
async def test_a_follower_gets_what_exists(bus: Bus, start: Start) -> None:
    """More than one pull's worth, in order."""
    await bus.publish_many([state(n, b"%d" % n) for n in range(1200)])

    got = await synced(bus, start)

    assert [m.data for m in got] == [b"%d" % n for n in range(1200)]
    assert [m.sequence for m in got] == list(range(1, 1201))


async def test_a_follower_begins_at_a_sequence(bus: Bus) -> None:
    """Earlier messages are not delivered, and not waited for."""
    await bus.publish_many([state(n) for n in range(10)])

    assert [m.sequence for m in await synced(bus, 8)] == [8, 9, 10]


async def test_a_new_follower_gets_only_what_comes(bus: Bus) -> None:
    """It is synced at once."""
    await bus.publish(state("old"))
    stop = asyncio.Event()
    got: list[str] = []
    async for page in bus.follow("STATE", ["state.v1.>"], stop, start="new"):
        assert page.synced
        got.extend(m.subject for m in page.messages)
        if got:
            stop.set()
        else:
            await bus.publish(state("new"))

    assert got == ["state.v1.c.k.new"]


async def test_only_the_subjects_asked_for_come(bus: Bus) -> None:
    """Two filters, and neither waits for what lies outside."""
    await bus.publish_many([state("a"), state("b")])
    await bus.publish(Outgoing(subject="state.v1.d.k.c", data=b""))
    stop = asyncio.Event()
    got: set[str] = set()
    wanted = ["state.v1.c.k.a", "state.v1.d.>"]
    async for page in bus.follow("STATE", wanted, stop):
        got.update(m.subject for m in page.messages)
        if page.synced:
            stop.set()

    assert got == {"state.v1.c.k.a", "state.v1.d.k.c"}


async def test_a_quiet_follower_gives_empty_pages(bus: Bus) -> None:
    """At least one a second, so that callers can do periodic work."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    times: list[float] = []
    async for _ in bus.follow("STATE", ["state.v1.>"], stop):
        times.append(loop.time())
        if len(times) == 3:
            stop.set()

    assert times[-1] - times[0] < 2.5


async def test_stop_ends_an_idle_follower_at_once(bus: Bus) -> None:
    """Not after its second."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    async for page in bus.follow("STATE", ["state.v1.>"], stop):
        assert page.synced
        loop.call_later(0.05, stop.set)

    assert loop.time() - began_s < 0.7


async def test_removed_subjects_are_not_waited_for(bus: Bus) -> None:
    """What is purged while a follower reads cannot come any more."""
    await bus.publish_many([state(n) for n in range(KEYS)])
    stop = asyncio.Event()
    async for page in bus.follow("STATE", ["state.v1.>"], stop):
        if not page.synced and page.messages:
            await bus.purge("STATE", "state.v1.>")
        if page.synced:
            stop.set()


async def test_what_others_write_does_not_keep_a_follower_waiting(bus: Bus) -> None:
    """Another cluster's messages never end; ours are all there."""
    await bus.publish_many([state(n) for n in range(KEYS)])
    done = asyncio.Event()

    async def write() -> None:
        while not done.is_set():
            others = [Outgoing(subject=f"state.v1.d.k.{n}", data=b"") for n in range(9)]
            await bus.publish_many(others)

    writer = asyncio.create_task(write())
    try:
        assert len(await synced(bus)) == KEYS
    finally:
        done.set()
        await writer


async def test_synced_means_every_subject_while_writers_overwrite(bus: Bus) -> None:
    """An overwritten message moves to the end; it is still waited for."""
    await bus.publish_many([state(n) for n in range(2000)])
    done = asyncio.Event()

    async def overwrite() -> None:
        while not done.is_set():
            order = random.sample(range(2000), 2000)
            await bus.publish_many([state(n) for n in order], 20_000)

    writers = [asyncio.create_task(overwrite()) for _ in range(3)]
    try:
        for _ in range(2):
            assert len({m.subject for m in await synced(bus)}) == 2000
    finally:
        done.set()
        await asyncio.gather(*writers)


async def test_what_is_not_said_again_ends_for_its_readers(bus: Bus) -> None:
    """As inventories do after a day, which is a second here; others live on."""
    topic = replace(INVENTORIES, lasts_s=1)
    stop = asyncio.Event()
    heard: dict[str, list[bool]] = {"silent": [], "repeated": []}

    async def say(node: str) -> None:
        message = DevicesAnnounced(
            cluster=ClusterName("c"), node=NodeName(node), pools=()
        )
        await bus.publish(Outgoing.of(topic, message))

    await say("silent")
    async with asyncio.timeout(30):
        async for batch in bus.read(topic, "c", stop=stop):
            for incoming in batch.messages:
                heard[incoming.names[1]].append(incoming.message is not None)
            if False in heard["silent"]:
                stop.set()
            await say("repeated")
    assert heard["silent"] == [True, False]
    assert len(heard["repeated"]) > 1
    assert all(heard["repeated"])


async def test_a_deleted_consumer_is_replaced(bus: Bus) -> None:
    """Nothing is lost and nothing comes twice."""
    stop = asyncio.Event()
    got: list[bytes] = []
    async with asyncio.timeout(20):
        async for page in bus.follow("STATE", ["state.v1.>"], stop):
            got.extend(m.data for m in page.messages)
            if page.synced and not got:
                await bus.publish(state(1, b"1"))
            elif got == [b"1"]:
                await remove_consumers(bus)
                await bus.publish(state(2, b"2"))
            elif len(got) == 2:
                stop.set()

    assert got == [b"1", b"2"]


async def remove_consumers(bus: Bus) -> None:
    """Delete every consumer of STATE, as an operator might."""
    api = "$JS.API.CONSUMER"
    names = (await bus._connection.request(f"{api}.NAMES.STATE")).data.decode()
    for name in names.partition('"consumers":[')[2].partition("]")[0].split(","):
        await bus._connection.request(f"{api}.DELETE.STATE.{name.strip(chr(34))}")


async def test_a_follower_survives_crashes_of_the_server(
    bus: Bus, nats_server: LabServer
) -> None:
    """Twice killed while four writers write: the exact final state arrives."""
    stop = asyncio.Event()
    written: dict[str, bytes] = {}
    believed: dict[str, bytes] = {}
    order: list[int] = []
    writing = asyncio.Event()
    settings = BusSettings(name="w", servers=(nats_server.url,), request_timeout_s=1)

    async def write(first: int) -> None:
        async with Bus.open(settings) as writer:
            number = 0
            while not writing.is_set():
                number += 1
                message = state(first + 4 * (number % 50), b"%d" % number)
                await writer.publish(message)
                written[message.subject] = message.data

    async def follow() -> None:
        async for page in bus.follow("STATE", ["state.v1.>"], stop):
            for message in page.messages:
                believed[message.subject] = message.data
                order.append(message.sequence)

    follower = asyncio.create_task(follow())
    writers = [asyncio.create_task(write(first)) for first in range(4)]
    for _ in range(2):
        seen = len(order)
        while len(order) < seen + 500:
            await asyncio.wait((follower,), timeout=0.02)
        nats_server.kill()
        await asyncio.wait((follower,), timeout=0.1)
        nats_server.spawn()
        await asyncio.to_thread(nats_server.wait_healthy)
    seen = len(order)
    while len(order) < seen + 500:
        await asyncio.wait((follower,), timeout=0.02)
    writing.set()
    await asyncio.gather(*writers)
    async with asyncio.timeout(10):
        while believed != written:
            await asyncio.wait((follower,), timeout=0.02)
    stop.set()
    await follower

    assert len(written) == 200
    assert order == sorted(set(order)), "each message once, in order"
    assert bus.connection == 3


async def test_a_lost_end_that_was_refilled_is_noticed(
    bus: Bus, nats_server: LabServer
) -> None:
    """As after a loss of power: the server lost messages, and others have their place.

    Played by putting back an earlier copy of its folder.
    """
    await bus.publish_many([state(n, b"kept") for n in range(5)])
    nats_server.stop()
    copy = nats_server.store_dir.with_name("copy")
    shutil.copytree(nats_server.store_dir, copy)
    await asyncio.to_thread(nats_server.start)
    await bus.wait_connected(10)
    await bus.publish_many([state(n, b"lost") for n in range(5, 8)])
    stop = asyncio.Event()
    known: dict[str, bytes] = {}
    restarts, was_lost = 0, False
    # Else one who never notices would wait for ever.
    async with asyncio.timeout(120):
        async for page in bus.follow("STATE", ["state.v1.c.>"], stop, start="all"):
            if page.restarted:
                restarts += 1
                known.clear()
            known |= {m.subject: m.data for m in page.messages}
            if restarts:
                if page.synced:
                    stop.set()
            elif len(known) == 8 and not was_lost:
                was_lost = True
                nats_server.kill()
                shutil.rmtree(nats_server.store_dir)
                shutil.copytree(copy, nats_server.store_dir)
                await _fill(LabServer(nats_server.store_dir), range(10, 16))
                await asyncio.to_thread(nats_server.start)

    assert restarts == 1
    assert [*known] == [f"state.v1.c.k.{n}" for n in (*range(5), *range(10, 16))]


async def _fill(server: LabServer, keys: Iterable[int]) -> None:
    """Store something where nobody else connects, and stop."""
    await asyncio.to_thread(server.start)
    try:
        async with Bus.open(BusSettings(name="other", servers=(server.url,))) as bus:
            await bus.wait_connected(10)
            await bus.publish_many([state(n) for n in keys])
    finally:
        await asyncio.to_thread(server.stop)


async def test_what_was_overwritten_is_no_loss(
    bus: Bus, nats_server: LabServer
) -> None:
    """A reader that was away while all that it had read was written anew goes on."""
    await bus.publish_many([state(n) for n in range(5)])
    stop = asyncio.Event()
    got: list[int] = []
    async for page in bus.follow("STATE", ["state.v1.c.>"], stop):
        assert not page.restarted
        got += [m.sequence for m in page.messages]
        if len(got) == 5:
            await asyncio.to_thread(nats_server.kill)
            await _fill(LabServer(nats_server.store_dir), range(5))
            await asyncio.to_thread(nats_server.start)
            got.append(0)
        elif len(got) > 10:
            stop.set()

    assert got == [1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10]


async def test_a_follower_waits_longer_each_time_for_its_consumer(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 300,000 subjects a busy server takes longer than a first try waits."""
    monkeypatch.setattr(follower, "REQUEST_S", 1e-5)
    await bus.publish_many([state(n) for n in range(10)])

    async with asyncio.timeout(60):
        assert len(await synced(bus)) == 10


async def test_a_consumer_that_delivers_nothing_is_made_anew(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paused one still sends its heartbeats."""
    monkeypatch.setattr(consumer, "_PULL_S", 1)
    monkeypatch.setattr(consumer, "_STALLED_S", 0.5)
    stop = asyncio.Event()
    read: list[str] = []
    before = stalled()
    async with aclosing(
        follow(bus._connection, "STATE", ["state.>"], stop, "all")
    ) as pages:
        assert (await anext(pages)).synced
        await pause_consumers(bus, "STATE")
        await bus.publish_many([state(1)])
        async with asyncio.timeout(60):
            while not read:
                page = await anext(pages)
                read += [message.subject for message in page.messages]

    assert read == [state(1).subject]
    assert stalled() == before + 1


def stalled() -> float:
    return float(metrics.CONSUMERS_STALLED.labels("STATE")._value.get())


async def pause_consumers(bus: Bus, stream: str) -> None:
    """As an operator may, or whoever has the password of a service."""
    listed = await call(
        bus._connection, f"CONSUMER.NAMES.{stream}", None, dict[str, Any]
    )
    for name in listed["consumers"]:
        await call(
            bus._connection,
            f"CONSUMER.PAUSE.{stream}.{name}",
            {"pause_until": "2099-01-01T00:00:00Z"},
            dict[str, Any],
        )


async def test_heartbeats_forgotten_by_a_restart_are_read_anew(
    bus: Bus, nats_server: LabServer
) -> None:
    """Memory is gone and sequences begin again: the follower begins again too."""
    stop = asyncio.Event()
    got: list[tuple[str, int]] = []
    beats = [Outgoing(subject=f"hb.v1.c.{n}", data=b"") for n in range(50)]
    await bus.publish_many(beats)
    async with asyncio.timeout(20):
        async for page in bus.follow("HB", ["hb.v1.>"], stop):
            got.extend((m.subject, m.sequence) for m in page.messages)
            if page.synced and len(got) == 50:
                nats_server.kill()
                nats_server.start()
                await bus.publish(Outgoing(subject="hb.v1.c.after", data=b""))
            if page.synced and got[-1:] == [("hb.v1.c.after", 1)]:
                stop.set()

    assert len(got) == 51


async def test_a_frozen_server_is_noticed(
    bus: Bus, nats_server: LabServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer to a probe costs the connection; afterwards there is a new one."""
    monkeypatch.setattr("runtime.bus.connection._PROBE_S", 1)
    async with Bus.open(
        BusSettings(name="probing", servers=(nats_server.url,))
    ) as probing:
        await probing.wait_connected(5)
        nats_server.pause()
        async with asyncio.timeout(10):
            while probing.connected:
                await asyncio.wait((asyncio.create_task(asyncio.sleep(0.05)),))
        nats_server.resume()
        await probing.wait_connected(20)
        assert probing.connection == 2
    assert bus.connected


async def test_nothing_is_synced_before_the_stream_could_be_asked(
    bus: Bus, nats_server: LabServer
) -> None:
    """A server that gives no answer at first has not said that there is nothing."""
    await bus.publish(state("a"))
    stop = asyncio.Event()
    got: list[str] = []
    pages = 0
    nats_server.pause()
    async for page in bus.follow("STATE", ["state.v1.>"], stop):
        pages += 1
        got.extend(message.subject for message in page.messages)
        if pages == 1:
            assert not page.synced
            nats_server.resume()
        if page.synced:
            assert got == ["state.v1.c.k.a"]
            stop.set()
