"""New certificates and passwords for NATS, in the steps of docs/operate.md."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from contracts.topics import INVENTORIES, SUBMISSIONS, Topic
from runtime.bus.bus import Bus
from runtime.errors import BusUnavailableError
from runtime.wire import BusSettings, Outgoing
from tests.integration.conftest import Installed
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, named
from tests.lab.controlplane.programs import REQUIRED
from tests.lab.manifests import K8S
from tests.lab.personas import SYSTEM
from tests.lab.secured_nats import SERVERS, SecuredNats
from tests.lab.services import eventually, running
from tests.lab.token_bus import agent_pod, token_of

ROUND = ("begin", "switch", "end")
CLUSTER, NODE = "local", "rotated-1"
SUBMITTER = "system:serviceaccount:rotated:submitter"
LIFETIME_S = "10"
"""How long users live whom Kubernetes vouches for: they come back all the time."""


@pytest.fixture(autouse=True)
def _openssl() -> None:
    if shutil.which("openssl") is None and os.environ.get(REQUIRED) != "1":
        pytest.skip("openssl is not installed: k8s/secrets.sh needs it")


class Sender:
    """Somebody who publishes all the time; what is refused for good ends the test."""

    def __init__(self, settings: BusSettings, topic: Topic[Any], *names: str) -> None:
        """Without the last name of the topic's subjects that one is a number."""
        self._settings = settings
        self._topic = topic
        self._names = names
        self.published: list[str] = []
        self.connections = 0

    async def publish(self, stop: asyncio.Event) -> None:
        """Publish until told to stop."""
        async with Bus.open(self._settings) as bus:
            await bus.wait_connected(30)
            while not stop.is_set():
                number = str(len(self.published))
                names = (*self._names, number)[: len(self._topic.names)]
                subject = self._topic.subject(*names)
                await bus.publish(Outgoing(subject=subject, data=number.encode()))
                self.published.append(subject)
            self.connections = bus.connection

    async def goes_on(self) -> None:
        """Wait until ten more were published."""
        wanted = len(self.published) + 10
        await eventually(lambda: len(self.published) >= wanted, "it goes on", 60)


class World(NamedTuple):
    """Three servers with their streams, and who sends all the time."""

    nats: SecuredNats
    senders: tuple[Sender, ...]
    """By password; a platform and a node agent by tokens of Kubernetes."""


@pytest.fixture
async def world(installed: Installed, tmp_path: Path) -> AsyncIterator[World]:
    nats = SecuredNats(tmp_path / "nats", tokens=True)
    kubectl = installed.kubectl
    given = [objects.node(NODE), *_submitter()]
    kubectl("apply", "-f", "-", given=given)
    pod = agent_pod(kubectl, NODE)
    tokens = {name: tmp_path / name for name in ("agent", "platform")}
    tokens["agent"].write_text(token_of(kubectl, f"{SYSTEM}/nodeagent", pod))
    tokens["platform"].write_text(token_of(kubectl, "rotated/submitter"))
    kubeconfig = tmp_path / "authcallout.kubeconfig"
    own = kubectl("create", "token", "authcallout", "-n", SYSTEM).strip()
    installed.control_plane.write_kubeconfig(kubeconfig, own)
    life = {"AUTHCALLOUT_LIFETIME_S": LIFETIME_S}
    callouts = [nats.callout(name, kubeconfig, **life) for name in ("one", "two")]
    platform = nats.settings(f"platform {SUBMITTER}", tokens["platform"])
    agent = nats.settings(f"nodeagent {NODE}", tokens["agent"])
    senders = (
        Sender(nats.settings("publisher"), SUBMISSIONS, CLUSTER, "n"),
        Sender(platform, SUBMISSIONS, CLUSTER, "rotated"),
        Sender(agent, INVENTORIES, CLUSTER, NODE),
    )
    try:
        with nats.running():
            async with Bus.open(nats.settings("publisher")) as bus:
                await bus.wait_connected(10)
                await bus.ensure_streams()
            async with running(*callouts):
                yield World(nats, senders)
    finally:
        kubectl("delete", "--wait=false", "-f", "-", given=[pod, *given])


def _submitter() -> Iterator[Json]:
    """Make who may submit gangs of one namespace."""
    yield named("v1", "Namespace", "rotated")
    yield named("v1", "ServiceAccount", "submitter", "rotated")
    rbac, role = "rbac.authorization.k8s.io", "moorings-gang-author"
    binding = named(f"{rbac}/v1", "RoleBinding", "submitter", "rotated")
    binding["roleRef"] = {"apiGroup": rbac, "kind": "ClusterRole", "name": role}
    subject = {"kind": "ServiceAccount", "name": "submitter", "namespace": "rotated"}
    yield {**binding, "subjects": [subject]}


async def _roll(nats: SecuredNats) -> None:
    """Restart one server after the other, as a StatefulSet does; each catches up."""
    for number in reversed(range(SERVERS)):
        await asyncio.to_thread(nats.restart, number)
        await asyncio.to_thread(nats.wait_healthy)


async def _read(nats: SecuredNats, read: list[str], stop: asyncio.Event) -> None:
    """Read all submissions as the user `solver`."""
    async with Bus.open(nats.settings("solver")) as bus:
        subjects = [SUBMISSIONS.any_subject]
        async for page in bus.follow("SUBMIT", subjects, stop, start="all"):
            assert not page.restarted
            read += [message.subject for message in page.messages]


async def test_everything_is_replaced_and_nothing_stops(
    world: World, tmp_path: Path
) -> None:
    """No publish is lost or refused, no message is missed, all servers stay healthy.

    Neither of those with passwords nor of those with tokens of Kubernetes.
    """
    nats, senders = world
    old = shutil.copytree(nats.folder, tmp_path / "old", symlinks=True)
    stop, done = asyncio.Event(), asyncio.Event()
    read: list[str] = []
    async with asyncio.TaskGroup() as tasks:
        publishing = [tasks.create_task(sender.publish(stop)) for sender in senders]
        tasks.create_task(_read(nats, read, done))
        for step in (*ROUND, ""):
            for sender in senders:
                await sender.goes_on()
            if step:
                await asyncio.to_thread(nats.make_secrets, step)
                await _roll(nats)
        stop.set()
        await asyncio.wait(publishing)
        submitted = [*senders[0].published, *senders[1].published]
        await eventually(lambda: len(read) >= len(submitted), "all is read")
        done.set()
    assert sorted(read) == sorted(submitted)
    assert await _last_inventory(nats) == str(len(senders[2].published) - 1)
    assert min(sender.connections for sender in senders[1:]) > SERVERS
    await _refuses_what_was_replaced(nats.settings("viewer"), old)
    log = await asyncio.to_thread(nats.log)
    assert "tls: bad certificate" not in log
    assert "certificate signed by unknown authority" not in log


async def _last_inventory(nats: SecuredNats) -> str:
    async with Bus.open(nats.settings("solver")) as bus:
        await bus.wait_connected(10)
        found = await bus.last("INV", INVENTORIES.subject(CLUSTER, NODE))
    assert found is not None
    return found.data.decode()


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
