"""New certificates and passwords for NATS, in the steps of docs/operations.md."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from contracts.topics import SUBMISSIONS
from runtime.bus.bus import Bus
from runtime.errors import BusUnavailableError
from runtime.wire import BusSettings, Outgoing
from tests.lab.controlplane.programs import REQUIRED
from tests.lab.manifests import K8S
from tests.lab.secured_nats import SERVERS, SecuredNats
from tests.lab.services import eventually

ROUND = ("begin", "switch", "end")


@pytest.fixture(autouse=True)
def _openssl() -> None:
    if shutil.which("openssl") is None and os.environ.get(REQUIRED) != "1":
        pytest.skip("openssl is not installed: k8s/secrets.sh needs it")


class Load:
    """Somebody who publishes all the time, and somebody who reads all of it."""

    def __init__(self, nats: SecuredNats) -> None:
        self._nats = nats
        self.published: list[str] = []
        self.read: list[str] = []

    async def publish(self, stop: asyncio.Event) -> None:
        """Publish as the user `platform`; what is refused for good ends the test."""
        settings = self._nats.settings("platform")
        async with Bus.open(settings) as bus:
            await bus.wait_connected(10)
            while not stop.is_set():
                subject = SUBMISSIONS.subject("c", "n", f"u{len(self.published)}")
                await bus.publish(Outgoing(subject=subject, data=b"{}"))
                self.published.append(subject)

    async def follow(self, stop: asyncio.Event) -> None:
        """Read as the user `solver`."""
        settings = self._nats.settings("solver")
        subjects = [SUBMISSIONS.any_subject]
        async with Bus.open(settings) as bus:
            async for page in bus.follow("SUBMIT", subjects, stop, start="all"):
                assert not page.restarted
                self.read += [message.subject for message in page.messages]

    async def goes_on(self) -> None:
        """Wait until ten more were published and read."""
        wanted = len(self.published) + 10
        await eventually(lambda: len(self.read) >= wanted, "the load goes on", 60)


@pytest.fixture
async def nats(tmp_path: Path) -> AsyncIterator[SecuredNats]:
    """Three servers with their streams."""
    servers = SecuredNats(tmp_path / "nats")
    with servers.running():
        async with Bus.open(servers.settings("publisher")) as bus:
            await bus.wait_connected(10)
            await bus.ensure_streams()
        yield servers


async def _roll(nats: SecuredNats) -> None:
    """Restart one server after the other, as a StatefulSet does; each catches up."""
    for number in reversed(range(SERVERS)):
        await asyncio.to_thread(nats.restart, number)
        await asyncio.to_thread(nats.wait_healthy)


async def test_everything_is_replaced_and_nothing_stops(
    nats: SecuredNats, tmp_path: Path
) -> None:
    """No publish is lost or refused, no message is missed, all servers stay healthy."""
    old = shutil.copytree(nats.folder, tmp_path / "old", symlinks=True)
    load, stop, read = Load(nats), asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        publishing = tasks.create_task(load.publish(stop))
        tasks.create_task(load.follow(read))
        for step in ROUND:
            await load.goes_on()
            await asyncio.to_thread(nats.make_secrets, step)
            await _roll(nats)
        await load.goes_on()
        stop.set()
        await publishing
        await eventually(lambda: len(load.read) >= len(load.published), "all is read")
        read.set()
    assert load.read == load.published
    await _refuses_what_was_replaced(nats.settings("platform"), old)
    log = await asyncio.to_thread(nats.log)
    assert "tls: bad certificate" not in log
    assert "certificate signed by unknown authority" not in log


async def _refuses_what_was_replaced(settings: BusSettings, old: Path) -> None:
    """The old password and the old authority, each alone; and the old certificate."""
    user = settings.user
    for replaced in (
        {"password_file": str(old / f"nats-user-{user}" / "password")},
        {"ca_file": str(old / "nats-tls" / "ca.crt")},
    ):
        with pytest.raises(BusUnavailableError):
            await _connect(structs.replace(settings, **replaced))
    await _connect(settings)
    certificate = old / "nats-tls" / "tls.crt"
    verified = await asyncio.create_subprocess_exec(
        "openssl", "verify", "-CAfile", settings.ca_file, str(certificate)
    )
    assert await verified.wait() != 0


async def _connect(settings: BusSettings) -> None:
    async with Bus.open(settings) as bus:
        await bus.wait_connected(2)


def _secrets(folder: Path, step: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(K8S / "secrets.sh"), str(folder), step]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_certificate_is_renewed_by_the_same_authority(tmp_path: Path) -> None:
    """Passwords and authority stay as they are."""
    assert _secrets(tmp_path, "new").returncode == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert _secrets(tmp_path, "renew").returncode == 0

    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"tls.key", "tls.crt", "secrets.yaml"}
    authority, certificate = str(tmp_path / "authority.crt"), str(tmp_path / "tls.crt")
    verify = ["openssl", "verify", "-CAfile", authority, certificate]
    assert subprocess.run(verify, check=False, capture_output=True).returncode == 0


def test_what_only_we_know_is_readable_by_us_alone(tmp_path: Path) -> None:
    """And the authority's key is in no Secret."""
    _secrets(tmp_path, "new")

    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}
    key = (tmp_path / "authority.key").read_text().splitlines()[1]
    assert key not in (tmp_path / "secrets.yaml").read_text()


@pytest.mark.parametrize(
    ("done", "step"),
    [
        ((), "begin"),
        (("new",), "new"),
        (("new",), "switch"),
        (("new",), "end"),
        (("new", "begin"), "begin"),
        (("new", "begin"), "renew"),
        (("new", "begin"), "end"),
        (("new", "begin", "switch"), "switch"),
        (("new",), "rotate"),
    ],
)
def test_a_step_out_of_order_changes_nothing(
    tmp_path: Path, done: tuple[str, ...], step: str
) -> None:
    """It says which comes first."""
    for before in done:
        assert _secrets(tmp_path, before).returncode == 0
    there = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    refused = _secrets(tmp_path, step)

    assert refused.returncode == 1
    assert f"{step}" in refused.stderr
    assert there == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
