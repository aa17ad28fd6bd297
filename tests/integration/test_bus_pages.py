"""Following streams from outside, by a relay: every message, over any interruption."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from contracts.topics import DECISIONS
from moorings.local.bus_users import LocalUsers
from runtime.bus import pages
from runtime.bus.bus import Bus
from runtime.bus.follower import Start
from runtime.bus.relaying import relaying
from runtime.errors import BusError
from runtime.users import VIEWER
from runtime.wire import BusSettings, Outgoing, Received
from tests.lab.nats_server import LabServer

KEYS = 2_000
LATE_S = 120.0


def state(key: object, data: bytes = b"") -> Outgoing:
    return Outgoing(subject=f"state.v1.c.k.{key}", data=data)


class World:
    """A server with accounts, a relay, a service and a viewer."""

    def __init__(self, folder: Path) -> None:
        self.users = LocalUsers(folder / "users")
        self.users.make()
        self.server = LabServer(folder / "nats", users=self.users)
        self.relay = AsyncExitStack()
        self.solver: Bus
        self.publisher: Bus
        self.viewer: Bus

    def settings(self, user: str) -> BusSettings:
        """Connect as a user."""
        file = str(self.users.password_file(user))
        return BusSettings(
            name=user, servers=(self.server.url,), user=user, password_file=file
        )

    async def start_relay(self) -> None:
        """Run a relay until `relay` is closed."""
        await self.relay.enter_async_context(relaying(self.settings("solver")))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await asyncio.to_thread(world.server.start)
    try:
        async with AsyncExitStack() as stack:
            for user in ("solver", "publisher", VIEWER):
                bus = await stack.enter_async_context(Bus.open(world.settings(user)))
                await bus.wait_connected(30)
                setattr(world, user, bus)
            await world.publisher.ensure_streams()
            await world.start_relay()
            stack.push_async_callback(world.relay.aclose)
            yield world
    finally:
        await asyncio.to_thread(world.server.stop)


async def synced(
    bus: Bus, start: Start = "last_per_subject", stream: str = "STATE"
) -> list[Received]:
    """Read until synced."""
    stop = asyncio.Event()
    got: list[Received] = []
    subject = "state.v1.c.>" if stream == "STATE" else "dec.v1.>"
    async with asyncio.timeout(LATE_S):
        async for page in bus.follow(stream, [subject], stop, start=start):
            got.extend(page.messages)
            if page.synced:
                stop.set()
    return got


@pytest.mark.parametrize("start", ["last_per_subject", "all", 1])
async def test_what_exists_comes_in_order(world: World, start: Start) -> None:
    """Also over more than a page, and nothing where there is nothing."""
    assert await synced(world.viewer, start) == []
    await world.publisher.publish_many([state(n, b"%d" % n) for n in range(1200)])

    got = await synced(world.viewer, start)

    assert [m.data for m in got] == [b"%d" % n for n in range(1200)]
    assert [m.sequence for m in got] == list(range(1, 1201))


async def test_of_each_subject_the_last_comes_first(world: World) -> None:
    """Where a stream keeps several; what comes later, comes."""
    for number in range(3):
        await world.solver.publish_many(
            [
                Outgoing(
                    subject=DECISIONS.subject("c", "n", f"{n}"), data=b"%d" % number
                )
                for n in range(400)
            ]
        )
    assert [m.data for m in await synced(world.viewer, stream="DEC")] == [b"2"] * 400
    stop = asyncio.Event()
    later: list[bytes] = []
    is_sent = False
    async with asyncio.timeout(LATE_S):
        async for page in world.viewer.follow("DEC", ["dec.v1.>"], stop):
            later += [m.data for m in page.messages if m.sequence > 1200]
            if page.synced and not is_sent:
                is_sent = True
                for data in (b"3", b"4"):
                    name = DECISIONS.subject("c", "n", "7")
                    await world.solver.publish(Outgoing(subject=name, data=data))
            if len(later) == 2:
                stop.set()
    assert later == [b"3", b"4"]


async def test_synced_means_every_subject_while_writers_overwrite(world: World) -> None:
    await world.publisher.publish_many([state(n) for n in range(KEYS)])
    done = asyncio.Event()

    async def overwrite() -> None:
        while not done.is_set():
            order = random.sample(range(KEYS), KEYS)
            await world.publisher.publish_many([state(n) for n in order], 20_000)

    writers = [asyncio.create_task(overwrite()) for _ in range(2)]
    try:
        got = await synced(world.viewer)
        assert len({m.subject for m in got}) == KEYS
        order = [m.sequence for m in got]
        assert order == sorted(set(order))
    finally:
        done.set()
        await asyncio.gather(*writers)


async def test_nothing_is_lost_over_crashes_of_server_and_relay(world: World) -> None:
    """The exact final state arrives, each message once and in order."""
    stop, writing = asyncio.Event(), asyncio.Event()
    written: dict[str, bytes] = {}
    believed: dict[str, bytes] = {}
    order: list[int] = []

    async def write() -> None:
        number = 0
        while not writing.is_set():
            number += 1
            message = state(number % 50, b"%d" % number)
            await world.publisher.publish(message)
            written[message.subject] = message.data

    async def follow() -> None:
        async for page in world.viewer.follow("STATE", ["state.v1.>"], stop):
            assert not page.restarted
            for message in page.messages:
                believed[message.subject] = message.data
                order.append(message.sequence)

    async def read_more(count: int) -> None:
        seen = len(order)
        while len(order) < seen + count:
            await asyncio.wait((follower,), timeout=0.02)
            assert not follower.done()

    follower = asyncio.create_task(follow())
    writer = asyncio.create_task(write())
    async with asyncio.timeout(LATE_S):
        await read_more(200)
        world.server.kill()
        await asyncio.to_thread(world.server.start)
        await read_more(200)
        await world.relay.aclose()
        await asyncio.sleep(1)
        await world.start_relay()
        await read_more(200)
        writing.set()
        await writer
        while believed != written:
            await asyncio.wait((follower,), timeout=0.02)
    stop.set()
    await follower

    assert order == sorted(set(order))


async def test_a_lost_end_that_was_refilled_is_noticed(world: World) -> None:
    """Played by putting back an earlier copy of the server's folder."""
    server = world.server
    await world.publisher.publish_many([state(n, b"kept") for n in range(5)])
    await asyncio.to_thread(server.stop)
    data, copy = server.store_dir / "data", server.store_dir.with_name("copy")
    shutil.copytree(data, copy)
    await asyncio.to_thread(server.start)
    await world.publisher.wait_connected(30)
    await world.publisher.publish_many([state(n, b"lost") for n in range(5, 8)])
    stop = asyncio.Event()
    known: dict[str, bytes] = {}
    restarts, was_lost = 0, False
    async with asyncio.timeout(LATE_S):
        async for page in world.viewer.follow("STATE", ["state.v1.c.>"], stop):
            if page.restarted:
                restarts += 1
                known.clear()
            known |= {m.subject: m.data for m in page.messages}
            if restarts and page.synced and len(known) == 11:
                stop.set()
            if len(known) == 8 and not was_lost:
                was_lost = True
                server.kill()
                shutil.rmtree(data)
                shutil.copytree(copy, data)
                await world.relay.aclose()  # so that it hears of all at once
                await asyncio.to_thread(server.start)
                await world.publisher.wait_connected(30)
                await world.publisher.publish_many([state(n) for n in range(10, 16)])
                await world.start_relay()

    assert restarts == 1
    assert [*known] == [f"state.v1.c.k.{n}" for n in (*range(5), *range(10, 16))]


async def test_what_is_read_for_long_is_read_without_gaps(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its follower looks now and then whether the stream is the same."""
    monkeypatch.setattr(pages, "_SURE_S", 0.2)
    stop = asyncio.Event()
    got: list[bytes] = []
    async with asyncio.timeout(LATE_S):
        async for page in world.viewer.follow("STATE", ["state.v1.c.>"], stop):
            assert not page.restarted
            got += [m.data for m in page.messages]
            if len(got) == 20:
                stop.set()
            elif page.synced:
                number = len(got)
                await world.publisher.publish(state(number % 3, b"%d" % number))
                await asyncio.sleep(0.1)

    assert list(dict.fromkeys(got)) == [b"%d" % n for n in range(len(set(got)))]


async def test_who_asks_once_is_told_that_nobody_answers(world: World) -> None:
    await world.relay.aclose()
    reading = world.viewer.read_existing(DECISIONS, "c", patient=False)

    async def read() -> None:
        async for batch in reading:
            assert not batch.caught_up

    with pytest.raises(BusError, match="no solver or publisher runs"):
        await asyncio.wait_for(read(), LATE_S)
