"""The programs of docs/subscribers, on the servers of k8s/base: every decision once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.codec import encode
from contracts.ids import ClusterName
from contracts.messages import DecisionMessage
from contracts.topics import DECISIONS
from runtime.bus.bus import Bus
from runtime.wire import Outgoing
from tests.builders.decisions import gang_allocated, gang_pending, gang_released
from tests.lab.controlplane.programs import REQUIRED
from tests.lab.go_program import NO_GO, built
from tests.lab.npm import installed
from tests.lab.secured_nats import SecuredNats
from tests.lab.services import eventually

SUBSCRIBERS = Path(__file__).parents[2] / "docs" / "subscribers"
GANGS = 600
"""More than a page."""
REASON = Reason(rule=Rule.TAKEN, message="2 devices are free")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNats]:
    """The servers, and a relay as services keep one; needs openssl."""
    if shutil.which("openssl") is None and os.environ.get(REQUIRED) != "1":
        pytest.skip("openssl is not installed: k8s/secrets.sh needs it")
    nats = SecuredNats(tmp_path_factory.mktemp("subscribed"))
    with nats.running():
        yield nats


@pytest.fixture
def command(language: str, tmp_path: Path) -> list[str]:
    """How a program is started; skips where its language is not installed."""
    if language == "python":
        return [sys.executable, str(SUBSCRIBERS / "subscriber.py")]
    if language == "go":
        program = built(SUBSCRIBERS / "go", ".", name="subscriber")
        if program is None:
            pytest.skip(NO_GO)
        return [str(program)]
    folder = SUBSCRIBERS / "javascript"
    packages = installed(folder / "package.json") / "node_modules"
    (tmp_path / packages.name).symlink_to(packages)
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    return ["node", str(tmp_path / "subscriber.js")]


@contextlib.asynccontextmanager
async def following(
    secured: SecuredNats, user: str, command: Sequence[str], log: Path
) -> AsyncIterator[Process]:
    """Run a program as a user; it writes to `log`."""
    variables = {
        "NATS_URL": secured.urls[0],
        "NATS_CA": str(secured.authority),
        "NATS_PASSWORD_FILE": str(secured.password_file(user)),
    }
    with log.open("wb") as written:
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **variables}, stdout=written
        )
    try:
        yield process
        assert process.returncode is None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def decide(bus: Bus, cluster: str, *decisions: DecisionMessage) -> list[str]:
    """Store decisions of a cluster, and return what is printed of them."""
    sent = [structs.replace(one, cluster=ClusterName(cluster)) for one in decisions]
    last = await bus.publish_batch([Outgoing.of(DECISIONS, one) for one in sent])
    return [
        f"{sequence} {encode(one).decode()}"
        for sequence, one in enumerate(sent, last - len(sent) + 1)
    ]


async def restart(secured: SecuredNats, bus: Bus) -> None:
    """End all servers as a crash would, and start them again."""
    for number in range(len(secured.urls)):
        secured.kill(number)
    for number in range(len(secured.urls)):
        secured.start(number)
    await asyncio.to_thread(secured.wait_healthy)
    await bus.wait_connected(60)


@pytest.mark.parametrize(
    ("language", "user"),
    [("python", "platform"), ("go", "viewer"), ("javascript", "platform")],
)
async def test_each_decision_is_printed_once_over_a_crash_of_all_servers(
    secured: SecuredNats, command: list[str], language: str, user: str, tmp_path: Path
) -> None:
    """Those before it started, those while it ran, and those while it was away."""
    log, later_log = tmp_path / "all.log", tmp_path / "later.log"
    expected: list[str] = []

    def is_printed() -> bool:
        return log.read_text().splitlines() == expected

    def is_printed_later() -> bool:
        return later_log.read_text().splitlines() == expected[-2:]

    async with contextlib.AsyncExitStack() as stack:
        bus = await stack.enter_async_context(Bus.open(secured.settings("solver")))
        await bus.wait_connected(60)
        await bus.ensure_streams()
        gangs = [gang_allocated(uid=f"gang-{n}", pods=2) for n in range(GANGS)]
        expected += await decide(bus, language, *gangs)
        await decide(bus, "another", gang_released())
        program = [*command, language]
        follower = following(secured, user, program, log)
        process = await stack.enter_async_context(follower)
        await eventually(is_printed, log.read_text)
        expected += await decide(bus, language, gang_pending(reasons=(REASON,)))
        await eventually(is_printed, log.read_text)
        process.send_signal(signal.SIGSTOP)  # so that it is away for long enough
        await restart(secured, bus)
        expected += await decide(bus, language, gang_released("gang-1"))
        process.send_signal(signal.SIGCONT)
        await eventually(is_printed, log.read_text)
        expected += await decide(bus, language, gang_released("gang-2"))
        await eventually(is_printed, log.read_text)

        known, _, _ = expected[-3].partition(" ")
        program = [*program, known]
        await stack.enter_async_context(following(secured, user, program, later_log))
        await eventually(is_printed_later, later_log.read_text)
