"""Whoever floods the bus, services are answered: JetStream's queues are theirs alone.

nats-server works off JetStream's requests of all accounts in one queue, and what a
stream answers waits with the acknowledgements of what is stored there. As long as 16
connections of `viewer` asked for one message again and again, no decision was
acknowledged and the server grew by 200 MB a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from contracts.topics import COMMANDS, DECISIONS, INVENTORIES, SUBMISSIONS, Topic
from moorings.local.bus_users import LocalUsers
from runtime.bus.bus import Bus
from runtime.bus.jetstream import call
from runtime.bus.relaying import relaying
from runtime.errors import BusUnavailableError
from runtime.users import NODEAGENT, PLATFORM, VIEWER, inbox_prefix
from runtime.wire import BusSettings, Outgoing
from tests.lab.fanout import subscribed
from tests.lab.flood import NUMBER, flooding
from tests.lab.nats_server import LabServer
from tests.lab.processes import resident_mebibytes
from tests.lab.soak import sized

SUBJECTS = 20_000
REQUESTS = 5_000
AGAIN_S = 30.0
ANSWERED_S = 5.0
"""A tenth of a second or so, on a machine that has the flood's other end as well."""
ROUNDS = 10
LONG = 3_800
"""Characters of a reply: about as many as a control line has."""
GROWS_S = sized(14, 60)
GROWN_MIB = 320
"""Twice what is read and written at once; what was remembered took more in 10 s."""
ALL = ">"
CREATE: dict[str, object] = {
    "stream_name": "DEC",
    "config": {
        "name": "viewer-000",
        "deliver_policy": "last_per_subject",
        "filter_subject": "dec.v1.>",
        "inactive_threshold": 1_000,
        "mem_storage": True,
    },
}
PAGE = {"seq": 1, "next_by_subj": "dec.v1.*.*.*"}
NOWHERE = {"seq": 1, "next_by_subj": "dec.v1.*.*.nowhere"}
LAST = "DIRECT.GET.DEC.dec.v1.local.team.1"
Body = dict[str, object] | None
FLOODS: dict[str, list[tuple[str, Body]]] = {
    VIEWER: [
        ("STREAM.INFO.DEC", {"subjects_filter": ALL}),
        ("STREAM.MSG.GET.DEC", {"last_by_subj": "dec.v1.*.*.nowhere"}),
        ("STREAM.MSG.GET.DEC", NOWHERE),
        ("CONSUMER.CREATE.DEC.viewer-000.dec.v1.>", CREATE),
        (LAST, None),
        ("DIRECT.GET.DEC", {"multi_last": [ALL] * 1_000}),
        ("DIRECT.GET.DEC", PAGE | {"batch": 1 << 30, "max_bytes": 1 << 40}),
    ],
    PLATFORM: [
        ("STREAM.INFO.DEC", {"subjects_filter": ALL}),
        (LAST, None),
        ("DIRECT.GET.DEC", PAGE),
    ],
    NODEAGENT: [
        ("STREAM.MSG.GET.INV", {"last_by_subj": ALL}),
        ("DIRECT.GET.INV.inv.v1.local.1", None),
    ],
}


class Flooded:
    """A server with accounts, many subjects and a solver that is connected."""

    def __init__(self, server: LabServer, users: LocalUsers, solver: Bus) -> None:
        self.server = server
        self.users = users
        self.solver = solver

    def settings(self, user: str) -> BusSettings:
        """Connect as a user."""
        return settings_of(self.server, self.users, user)

    async def decide(self, stream: str, number: int) -> float:
        """Ask and store what a solver does for a decision; gives how long it took."""
        began_s = time.monotonic()
        await call(self.solver._connection, f"STREAM.INFO.{stream}", None, dict)
        fence = {"last_by_subj": f"dec.v1.local.team.{number}"}
        await call(self.solver._connection, "STREAM.MSG.GET.DEC", fence, dict)
        subject = DECISIONS.subject("local", "team", f"{number}")
        await self.solver.publish(Outgoing(subject=subject, data=b"{}"))
        return time.monotonic() - began_s


def settings_of(server: LabServer, users: LocalUsers, user: str) -> BusSettings:
    """Connect as a user."""
    file = str(users.password_file(user))
    return BusSettings(name=user, servers=(server.url,), user=user, password_file=file)


async def fill(bus: Bus, topic: Topic[Any]) -> None:
    """Store a message on many subjects."""
    before = ("local", "team")[: len(topic.names) - 1]
    subjects = [topic.subject(*before, f"{n}") for n in range(SUBJECTS)]
    data = b'{"x":"%b"}' % (b"y" * 500)
    await bus.publish_many([Outgoing(subject=name, data=data) for name in subjects])


@pytest.fixture
async def flooded(tmp_path: Path) -> AsyncIterator[Flooded]:
    users = LocalUsers(tmp_path / "users")
    users.make()
    server = LabServer(tmp_path / "nats", users=users)
    await asyncio.to_thread(server.start)
    settings = settings_of(server, users, "solver")
    try:
        async with relaying(settings), Bus.open(settings) as solver:
            await solver.wait_connected(30)
            await solver.ensure_streams()
            await fill(solver, DECISIONS)
            async with Bus.open(settings_of(server, users, NODEAGENT)) as agent:
                await agent.wait_connected(30)
                await fill(agent, INVENTORIES)
            yield Flooded(server, users, solver)
    finally:
        await asyncio.to_thread(server.stop)


@pytest.mark.parametrize("user", FLOODS)
async def test_decisions_go_on_beside_floods_that_do_not_end(
    flooded: Flooded, user: str
) -> None:
    """Each is the costliest request of its kind, sent as fast as it can be."""
    late = {}
    for operation, body in FLOODS[user]:
        took_s = await _decide_beside(flooded, user, operation, body)
        if took_s > ANSWERED_S:
            late[operation, str(body)[:60]] = took_s
    assert late == {}


FAN_OUTS = {
    "pages": (VIEWER, f"{inbox_prefix(VIEWER)}.many", True),
    "pages that nobody reads": (VIEWER, f"{inbox_prefix(VIEWER)}.many", False),
    "news": (VIEWER, "evt.dec.v1.>", True),
    "news that nobody reads": (PLATFORM, "evt.dec.v1.>", False),
}


@pytest.mark.parametrize("what", FAN_OUTS)
async def test_decisions_go_on_beside_thousands_of_subscriptions(
    flooded: Flooded, what: str
) -> None:
    """Of those who hear the pages that they ask for, or the news, in each of them."""
    user, subject, reads = FAN_OUTS[what]
    login = flooded.users.password_file(user).read_text().strip()
    is_news = subject.startswith("evt.")
    async with contextlib.AsyncExitStack() as stack:
        many = subscribed(
            flooded.server.port, login, subject, reads=reads, anew=is_news
        )
        stack.enter_context(many)
        if not is_news:
            asked, told = "JS.CORE.API.DIRECT.GET.DEC", json.dumps(PAGE).encode()
            port = flooded.server.port
            stack.enter_context(flooding(port, login, asked, told, subject))
        await asyncio.sleep(1)
        assert await _decide_some(flooded, "DEC") < ANSWERED_S


async def test_services_publish_beside_acknowledgements_that_are_heard_in_thousands(
    flooded: Flooded,
) -> None:
    """Of submissions, to whose stream the publisher's go as well."""
    login = flooded.users.password_file(PLATFORM).read_text().strip()
    heard, port = f"{inbox_prefix(PLATFORM)}.many", flooded.server.port
    evil = SUBMISSIONS.subject("local", "evil", "1")
    async with Bus.open(flooded.settings("publisher")) as publisher:
        await publisher.wait_connected(30)
        with (
            subscribed(port, login, heard, reads=True),
            flooding(port, login, evil, b"{}", heard),
        ):
            await asyncio.sleep(1)
            assert await _decide_some(flooded, "SUBMIT") < ANSWERED_S
            async with asyncio.timeout(ANSWERED_S):
                subject = SUBMISSIONS.subject("local", "team", "1")
                await publisher.publish(Outgoing(subject=subject, data=b"{}"))


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        (VIEWER, "JS.CORE.API.STREAM.INFO.DEC"),
        (PLATFORM, SUBMISSIONS.subject("local", "evil", "1")),
    ],
)
async def test_the_server_does_not_grow_with_long_replies(
    flooded: Flooded, user: str, subject: str
) -> None:
    """It remembered each until it was answered: 1.5 GiB after 30 s of such requests."""
    login = flooded.users.password_file(user).read_text().strip()
    heard = f"{inbox_prefix(user)}.{'x' * LONG}.{NUMBER}"
    pid = flooded.server.pid
    assert pid is not None
    before = resident_mebibytes(pid)
    with flooding(flooded.server.port, login, subject, b"{}", heard, connections=3):
        until_s = time.monotonic() + GROWS_S
        while time.monotonic() < until_s:
            assert await _decide_some(flooded, "DEC") < ANSWERED_S
            assert resident_mebibytes(pid) - before < GROWN_MIB


async def _decide_beside(
    flooded: Flooded, user: str, operation: str, body: Body
) -> float:
    """Flood, and give how long the slowest of some decisions took; inf: for ever."""
    stream = "INV" if user == NODEAGENT else "DEC"
    told = json.dumps(body).encode() if body is not None else b""
    login = flooded.users.password_file(user).read_text().strip()
    heard = f"{inbox_prefix(user)}.flood"
    subject = f"JS.CORE.API.{operation}"
    with flooding(flooded.server.port, login, subject, told, heard):
        await asyncio.sleep(1)
        return await _decide_some(flooded, stream)


async def _decide_some(flooded: Flooded, stream: str) -> float:
    """Give how long the slowest of some decisions took; inf: for ever."""
    took_s = [0.0]
    for number in range(ROUNDS):
        try:
            async with asyncio.timeout(2 * ANSWERED_S):
                took_s.append(await flooded.decide(stream, number))
        except (BusUnavailableError, TimeoutError):
            return math.inf
        await asyncio.sleep(0.2)
    return max(took_s)


async def test_another_account_is_answered_beside_a_flood(flooded: Flooded) -> None:
    """And another connection of the flooding user, a little later."""
    login = flooded.users.password_file(VIEWER).read_text().strip()
    subject, heard = "JS.CORE.API.STREAM.INFO.DEC", f"{inbox_prefix(VIEWER)}.flood"
    port = flooded.server.port
    async with (
        Bus.open(flooded.settings(PLATFORM)) as platform,
        Bus.open(flooded.settings(VIEWER)) as viewer,
    ):
        await platform.wait_connected(30)
        await viewer.wait_connected(30)
        with flooding(port, login, subject, b"", heard):
            await asyncio.sleep(1)
            name = DECISIONS.subject("local", "team", "1")
            assert await platform.last("DEC", name) is not None
        async with asyncio.timeout(AGAIN_S):
            assert await viewer.last("DEC", name) is not None


async def test_a_flood_of_costly_requests_does_not_last(
    bus: Bus, nats_server: LabServer
) -> None:
    """Each asks for all subjects of a stream, as only a service can."""
    await fill(bus, COMMANDS)
    flooding_client = Client()
    await flooding_client.connect([nats_server.url])
    for _ in range(REQUESTS):
        subject, reply = "$JS.API.STREAM.INFO.CMD", "_INBOX.nobody"
        await flooding_client.publish(subject, b'{"subjects_filter":">"}', reply)
    await flooding_client.flush()
    began_s = time.monotonic()
    assert (await bus.usage("CMD")).subjects == SUBJECTS
    assert time.monotonic() - began_s < AGAIN_S
    await flooding_client.close()
