"""What outsiders publish is stored by a relay, and acknowledged as by its stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from contracts.topics import COMMANDS, HEARTBEATS, SUBMISSIONS
from moorings.local.bus_users import LocalUsers
from runtime.bus.bus import Bus
from runtime.bus.relaying import relaying
from runtime.errors import BusUnavailableError, PublishRefusedError
from runtime.users import NODEAGENT, PLATFORM
from runtime.wire import BusSettings, Outgoing
from tests.lab.nats_server import LabServer
from tests.lab.services import eventually

GANG = ("local", "team", "1")
PIPELINED = 300


class Outsiders:
    """A server with accounts, its solver, and those outside."""

    def __init__(self, relay: AsyncExitStack, buses: dict[str, Bus]) -> None:
        self.relay = relay
        self.solver = buses["solver"]
        self.platform = buses[PLATFORM]
        self.agent = buses[NODEAGENT]


@pytest.fixture
async def outsiders(tmp_path: Path) -> AsyncIterator[Outsiders]:
    users = LocalUsers(tmp_path / "users")
    users.make()
    server = LabServer(tmp_path / "nats", users=users)
    await asyncio.to_thread(server.start)

    def settings(user: str) -> BusSettings:
        file = str(users.password_file(user))
        return BusSettings(
            name=user, servers=(server.url,), user=user, password_file=file
        )

    try:
        async with AsyncExitStack() as stack:
            buses = {}
            for user in ("solver", PLATFORM, NODEAGENT):
                bus = await stack.enter_async_context(Bus.open(settings(user)))
                await bus.wait_connected(30)
                buses[user] = bus
            await buses["solver"].ensure_streams()
            relay = await stack.enter_async_context(AsyncExitStack())
            await relay.enter_async_context(relaying(settings("solver")))
            yield Outsiders(relay, buses)
    finally:
        await asyncio.to_thread(server.stop)


async def test_a_submission_is_stored_once(outsiders: Outsiders) -> None:
    submission = Outgoing(subject=SUBMISSIONS.subject(*GANG), data=b"{}")
    sequence = await outsiders.platform.publish(submission)
    other = Outgoing(subject=submission.subject, data=b"[]")
    with pytest.raises(PublishRefusedError) as refused:
        await outsiders.platform.publish(other)

    stored = await outsiders.solver.last("SUBMIT", submission.subject)
    assert stored is not None
    assert (stored.sequence, stored.data) == (sequence, b"{}")
    assert refused.value.kind == "exists"


async def test_ids_of_others_make_no_message_a_duplicate(outsiders: Outsiders) -> None:
    subjects = [SUBMISSIONS.subject("local", "team", name) for name in ("1", "2")]
    sent = [
        Outgoing(subject=subject, data=b"{}", message_id="same") for subject in subjects
    ]
    sequences = [await outsiders.platform.publish(message) for message in sent]

    assert len(set(sequences)) == len(subjects)
    for subject in subjects:
        assert await outsiders.solver.last("SUBMIT", subject) is not None


async def test_a_subject_of_no_names_is_refused(outsiders: Outsiders) -> None:
    message = Outgoing(subject="submit.v1.local.team.a\x0cb", data=b"{}")
    with pytest.raises(PublishRefusedError, match="no name"):
        await outsiders.platform.publish(message)


async def test_what_one_says_keeps_its_order(outsiders: Outsiders) -> None:
    subject = COMMANDS.subject(*GANG)
    await outsiders.platform.publish_many(
        [Outgoing(subject=subject, data=b"%d" % n) for n in range(PIPELINED)]
    )
    stored = await outsiders.solver.last("CMD", subject)
    assert stored is not None
    assert stored.data == b"%d" % (PIPELINED - 1)


async def test_what_expects_no_answer_is_stored(outsiders: Outsiders) -> None:
    subject = HEARTBEATS.subject("local", "n1")
    await outsiders.agent.publish(Outgoing(subject=subject, data=b"1"))
    await outsiders.agent._connection.publish(subject, b"2")

    async def is_stored() -> bool:
        stored = await outsiders.solver.last("HB", subject)
        return stored is not None and stored.data == b"2"

    await eventually(is_stored, "stored", 10)


async def test_where_no_relay_runs_the_sender_is_told(
    outsiders: Outsiders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.retry.ATTEMPTS", 2)
    await outsiders.relay.aclose()

    submission = Outgoing(subject=SUBMISSIONS.subject(*GANG), data=b"{}")
    with pytest.raises(
        BusUnavailableError, match=r"no solver or publisher runs there\Z"
    ):
        await outsiders.platform.publish(submission)
