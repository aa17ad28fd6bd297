"""Whoever floods the bus with commands, those of others are carried out.

Commands about gangs that are not there were read one after the other, 5,000 a second
where 40,000 came: a cancellation waited behind them for minutes, and once they had
filled their stream nobody's was taken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from contracts import topics
from contracts.gang import Gang
from contracts.ids import ClusterName, GangUID, Namespace, NodeName
from contracts.lifecycle import PUBLISHER
from contracts.messages import (
    CancelGang,
    CommandMessage,
    DevicesAnnounced,
    GangAllocated,
    GangReleased,
    ReleaseGang,
)
from moorings.local.bus_users import LocalUsers
from runtime.bus.bus import Bus
from runtime.users import NODEAGENT, PLATFORM
from runtime.wire import BusSettings, Outgoing
from tests.builders import devices, gang, member, member_claim, pool, request
from tests.lab.flood import NUMBER, flooding
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

CONNECTIONS = 2
FLOODED_S = 5.0
CARRIED_OUT_S = 20.0
TEAM_B = Namespace("team-b")
NOBODY = GangUID(f"nobody-{NUMBER}")


def nobody_in(cluster: str) -> Outgoing:
    """Cancel a gang that was never submitted."""
    message = CancelGang(cluster=ClusterName(cluster), namespace=TEAM_B, uid=NOBODY)
    return Outgoing.of(topics.COMMANDS, message)


LARGE = "large"
"""One connection of them fills the stream in seconds."""
FLOODS = {
    "nobody": nobody_in(CLUSTER),
    "unreadable": Outgoing(subject=nobody_in(CLUSTER).subject, data=b"{}"),
    "another cluster": nobody_in("nowhere"),
    LARGE: Outgoing(subject=nobody_in(CLUSTER).subject, data=b"x" * 8_000),
}


class Site(NamedTuple):
    """A server with accounts, and who is connected to it."""

    port: int
    login: str
    """Of platforms."""
    bus: Bus
    platform: Bus
    publisher: Bus


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    users = LocalUsers(tmp_path / "users")
    users.make()
    server = LabServer(tmp_path / "nats", users=users)
    await asyncio.to_thread(server.start)

    async def connect(user: str) -> Bus:
        file = str(users.password_file(user))
        bus = await stack.enter_async_context(
            Bus.open(
                BusSettings(
                    name=user, servers=(server.url,), user=user, password_file=file
                )
            )
        )
        await bus.wait_connected(30)
        return bus

    variables = {
        "SOLVER_BUS_USER": "solver",
        "SOLVER_BUS_PASSWORD_FILE": str(users.password_file("solver")),
        "SOLVER_HEARTBEAT_GRACE_S": "100000",
    }
    try:
        async with AsyncExitStack() as stack:
            bus, publisher = await connect("solver"), await connect("publisher")
            await bus.ensure_streams()
            node = pool(*devices(4), name="a")
            inventory = DevicesAnnounced(
                cluster=CLUSTER, node=NodeName("a"), pools=(node,)
            )
            process = solver(server.url, tmp_path, **variables)
            await stack.enter_async_context(running(process))
            await announce(await connect(NODEAGENT), inventory)
            await observe_class(publisher)
            login = users.password_file(PLATFORM).read_text().strip()
            platform = await connect(PLATFORM)
            yield Site(server.port, login, bus, platform, publisher)
    finally:
        await asyncio.to_thread(server.stop)


def wanted(number: int) -> Gang:
    """Ask for one device."""
    return gang(
        member(member_claim(request(count=1))),
        name=f"g{number}",
        uid=f"00000000-0000-4000-8000-{number:012}",
    )


def is_last(bus: Bus, asked: Gang, kind: type) -> Callable[[], Awaitable[bool]]:
    """Make a question: is the last decision on a gang of this kind?"""

    async def ask() -> bool:
        return isinstance(await decision_on(bus, asked), kind)

    return ask


@pytest.mark.parametrize("flood", FLOODS)
async def test_commands_of_others_are_carried_out_beside_a_flood(
    site: Site, flood: str
) -> None:
    """A platform's and the publisher's own, while another sends without end."""
    about: list[dict[str, Any]] = [
        {
            "cluster": CLUSTER,
            "namespace": Namespace(asked.metadata.namespace),
            "uid": GangUID(asked.metadata.uid),
        }
        for asked in (wanted(1), wanted(2))
    ]
    commands: list[tuple[Bus, CommandMessage]] = [
        (site.platform, CancelGang(**about[0])),
        (site.publisher, ReleaseGang(**about[1], reason=f"{PUBLISHER}its pods ended")),
    ]
    for number in (1, 2):
        await submit(site.platform, wanted(number))
    for number in (1, 2):
        await eventually(is_last(site.bus, wanted(number), GangAllocated), "decided")
    sent, connections = FLOODS[flood], 1 if flood == LARGE else CONNECTIONS
    with flooding(
        site.port, site.login, sent.subject, sent.data, "", connections=connections
    ):
        await asyncio.sleep(FLOODED_S)
        for number, (sender, command) in enumerate(commands, start=1):
            began_s = time.monotonic()
            await sender.publish(Outgoing.of(topics.COMMANDS, command))
            ended = is_last(site.bus, wanted(number), GangReleased)
            await eventually(ended, "carried out", within_s=60)
            assert time.monotonic() - began_s < CARRIED_OUT_S
    for number, (_, command) in enumerate(commands, start=1):
        decision = await decision_on(site.bus, wanted(number))
        assert isinstance(decision, GangReleased)
        assert decision.command == command
