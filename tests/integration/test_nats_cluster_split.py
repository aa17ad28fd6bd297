"""What servers without a majority say is not taken for what is stored.

Three servers of k8s/base with links between them that can be cut; whoever is cut off
still has clients.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from contracts.topics import SUBMISSIONS
from runtime.bus.bus import Bus
from runtime.errors import BusUnavailableError
from runtime.wire import Outgoing
from tests.lab.controlplane.programs import REQUIRED
from tests.lab.nats_cluster import ask, connected_to, leader_of
from tests.lab.secured_nats import SERVERS, SecuredNats
from tests.lab.services import CLUSTER, eventually

STREAM = SUBMISSIONS.stream


def submission(uid: str) -> Outgoing:
    return Outgoing(subject=f"submit.v1.{CLUSTER}.n.{uid}", data=b"x")


@pytest.fixture
def nats(tmp_path: Path) -> SecuredNats:
    """The three servers, with links that can be cut."""
    if shutil.which("openssl") is None and os.environ.get(REQUIRED) != "1":
        pytest.skip("openssl is not installed: k8s/secrets.sh needs it")
    return SecuredNats(tmp_path / "nats", links=True)


def connect(
    nats: SecuredNats, *numbers: int, timeout_s: float = 2.0
) -> AbstractAsyncContextManager[Bus]:
    """Make a bus that knows some of the servers only."""
    settings = structs.replace(
        nats.settings("publisher"),
        servers=tuple(nats.urls[number] for number in numbers),
        request_timeout_s=timeout_s,
    )
    return Bus.open(settings)


async def says(bus: Bus, last: int) -> bool:
    """Say whether a server answers that the stream ends at this sequence."""
    try:
        return (await ask(bus, STREAM)).state.last_seq == last
    except (BusUnavailableError, msgspec.ValidationError):
        return False


async def test_what_is_only_proposed_takes_no_subject(nats: SecuredNats) -> None:
    """A leader without the others refuses a second attempt for the first one."""
    async with nats.running_linked(), connect(nats, *range(SERVERS)) as bus:
        await bus.wait_connected(10)
        await bus.ensure_streams()
        leader = await leader_of(bus, STREAM)
        async with connect(nats, leader, timeout_s=1.0) as cut_off:
            await cut_off.wait_connected(10)
            nats.isolate(leader)
            submitting = asyncio.create_task(cut_off.publish(submission("u")))
            await asyncio.sleep(3)
            assert not submitting.done()
            nats.heal()
            sequence = await submitting
        stored = await bus.last(STREAM, submission("u").subject)
    assert stored is not None
    assert (stored.sequence, stored.data) == (sequence, b"x")


@asynccontextmanager
async def connected_first(
    nats: SecuredNats, first: int, then: int
) -> AsyncIterator[Bus]:
    """Make a bus that is connected to one server and knows one other."""
    while True:
        async with connect(nats, first, then) as bus:
            await bus.wait_connected(10)
            if connected_to(bus) == nats.urls[first]:
                yield bus
                return


async def test_who_is_cut_off_has_lost_nothing(nats: SecuredNats) -> None:
    """It says how far it is itself, and lacks what the others stored since.

    For seconds it takes itself for the leader still, then nobody leads it.
    """
    got: list[int] = []
    pages = 0
    stop = asyncio.Event()

    async def follow(bus: Bus) -> None:
        nonlocal pages
        async for page in bus.follow(
            STREAM, [SUBMISSIONS.any_subject], stop, start="all"
        ):
            assert not page.restarted
            got.extend(message.sequence for message in page.messages)
            pages += 1

    async with nats.running_linked(), AsyncExitStack() as stack:
        async with connect(nats, *range(SERVERS)) as bus:
            await bus.wait_connected(10)
            await bus.ensure_streams()
            await bus.publish(submission("a"))
            behind = await leader_of(bus, STREAM)
        near, other = (number for number in range(SERVERS) if number != behind)
        following = await stack.enter_async_context(connected_first(nats, near, behind))
        task = asyncio.create_task(follow(following))
        await eventually(lambda: got == [1], "what there was is read")
        nats.isolate(behind)
        async with connect(nats, near, other) as bus:
            await bus.publish(submission("b"))
            await eventually(lambda: got == [1, 2], "both are read")
        nats.kill(near)
        pages = 0
        async with connect(nats, behind) as cut_off:
            await eventually(partial(says, cut_off, 1), "who is cut off answers", 60)
            await eventually(lambda: task.done() or pages > 15, "it was asked", 60)
        assert following.connection == 2
        nats.heal()
        nats.start(near)
        await following.publish(submission("c"))
        await eventually(lambda: task.done() or got[-1:] == [3], "all is read", 120)
        stop.set()
        await task
    assert got == [1, 2, 3]
