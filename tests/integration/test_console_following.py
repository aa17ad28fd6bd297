"""A console follows a real bus: everything first, then changes, anew after a loss."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from contracts.ids import ClusterName, NodeName
from contracts.messages import DevicesAnnounced
from contracts.topics import INVENTORIES, SUBMISSIONS
from moorings.bus_client import Client
from moorings.console.following import MOST_BEHIND, Following
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests import builders
from tests.builders.decisions import submission

CLUSTER = ClusterName("test")
TIMEOUT_S = 60.0


def announced(node: str, count: int = 1) -> Outgoing:
    """Announce so many devices of a node."""
    pool = builders.pool(*builders.devices(count), name=node)
    message = DevicesAnnounced(cluster=CLUSTER, node=NodeName(node), pools=(pool,))
    return Outgoing.of(INVENTORIES, message)


@asynccontextmanager
async def followed(bus: Bus) -> AsyncIterator[Following]:
    """Follow a bus while the block runs."""
    stop = asyncio.Event()
    following = Following(Client(bus, CLUSTER))
    task = asyncio.create_task(following.run(stop))
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield following
    finally:
        stop.set()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(updates: AsyncIterator[dict[str, Any]], part: str, name: str) -> Any:
    """Read updates until one has something of that name; returns it."""
    async for update in updates:
        if name in update.get(part, {}):
            return update[part][name]
    raise AssertionError(name)


async def test_everything_comes_first_then_what_changes(bus: Bus) -> None:
    await bus.publish(announced("a"))
    await bus.publish(announced("b"))
    async with followed(bus) as following, following.listen() as updates:
        first = await anext(updates)
        assert first["whole"]
        assert set(first["nodes"]) == {"a", "b"}
        await bus.publish(announced("a", count=2))
        record = await until(updates, "nodes", "a")
        assert record["states"] == "FF"


async def test_what_cannot_be_read_is_counted_and_the_rest_is_shown(bus: Bus) -> None:
    hostile = Outgoing(subject=INVENTORIES.subject(CLUSTER, "x"), data=b"{")
    await bus.publish(hostile)
    asked = submission()
    asked = type(asked)(cluster=CLUSTER, uid=asked.uid, gang=asked.gang)
    await bus.publish(Outgoing.of(SUBMISSIONS, asked))
    async with followed(bus) as following, following.listen() as updates:
        first = await anext(updates)
        assert first["about"]["unread"] == 1
        (unread,) = first["about"]["lastUnread"]
        assert unread["subject"] == hostile.subject
        assert len(first["gangs"]) == 1


async def test_who_does_not_listen_is_ended_and_told_everything_again(bus: Bus) -> None:
    async with followed(bus) as following:
        async with following.listen() as slow, following.listen() as quick:
            await anext(quick)
            for number in range(MOST_BEHIND + 1):
                await bus.publish(announced("a", count=1 + number % 2))
                await until(quick, "nodes", "a")
            behind = [update async for update in slow]
            assert len(behind) < MOST_BEHIND + 1
        async with following.listen() as again:
            assert (await anext(again))["whole"]


async def test_after_a_stream_was_lost_nothing_of_it_is_shown(bus: Bus) -> None:
    await bus.publish(announced("a"))
    async with followed(bus) as following:
        async with following.listen() as updates:
            assert "a" in (await anext(updates))["nodes"]
            await bus._connection.request(f"$JS.API.STREAM.DELETE.{INVENTORIES.stream}")
            await bus.ensure_streams()
            async for _ in updates:
                pass  # until it ends
        async with following.listen() as again:
            assert (await anext(again))["nodes"] == {}
            await bus.publish(announced("b"))
            await until(again, "nodes", "b")
