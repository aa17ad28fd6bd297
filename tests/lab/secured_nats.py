"""The servers of k8s/base on loopback, with the Secrets that k8s/secrets.sh makes.

Takes the configuration as it is applied and changes only where it listens and where its
files lie.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import yaml
from nats.aio.client import Client

from moorings.local.nats_server import find_server_program
from moorings.local.process import find_free_port
from runtime.bus.permissions import CALLOUT_KEYS, PASSWORDS
from runtime.users import CALLOUT
from runtime.wire import BusSettings
from tests.lab.clock.stepped import SteppedClock
from tests.lab.manifests import BASE, K8S, TOKENS
from tests.lab.partition import Link, forwarding
from tests.lab.relay import start_relay
from tests.lab.services import Process

HEALTHY_S = 300.0
SERVERS = 3


class SecuredNats:
    """The servers, and how each user of the bus reaches them."""

    def __init__(
        self,
        folder: Path,
        *,
        links: bool = False,
        tokens: bool = False,
        clock: SteppedClock | None = None,
    ) -> None:
        """Make certificates and passwords.

        With `links` between the servers; with `tokens` they ask the auth callout about
        everybody who has no password, as k8s/components/tokens sets them up.
        Certificates are valid from when it is by `clock`; None: from now on.
        """
        self.folder = folder
        self._variables = {} if clock is None else clock.variables
        self._tokens = tokens
        ports = _free_ports()
        self._client_ports = [next(ports) for _ in range(SERVERS)]
        self._cluster_ports = [next(ports) for _ in range(SERVERS)]
        self._monitor_ports = [next(ports) for _ in range(SERVERS)]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._relay: subprocess.Popen[bytes] | None = None
        self.links: dict[tuple[int, int], Link] = {}
        """From a server to another, where they can be cut; the test runs them."""
        if links:
            self.links = {
                (one, other): Link(next(ports), self._cluster_ports[other])
                for one, other in itertools.permutations(range(SERVERS), 2)
            }
        folder.mkdir(exist_ok=True)
        self.make_secrets("new")
        self._write_permissions()

    @property
    def urls(self) -> tuple[str, ...]:
        """Where the servers listen."""
        return tuple(f"nats://127.0.0.1:{port}" for port in self._client_ports)

    @property
    def monitor_port(self) -> int:
        """Where the first of them says how it is."""
        return self._monitor_ports[0]

    @property
    def authority(self) -> Path:
        """Who vouches for them."""
        return self.folder / "nats-tls" / "ca.crt"

    def password_file(self, user: str) -> Path:
        """Where a user's login and password are."""
        return self.folder / f"nats-user-{user}" / "password"

    def settings(self, user: str, token_file: Path | None = None) -> BusSettings:
        """Make the settings of a user, by its password or by a token."""
        return BusSettings(
            name=user,
            servers=self.urls,
            replicas=SERVERS,
            ca_file=str(self.authority),
            user=user,
            password_file=str(token_file or self.password_file(user)),
        )

    @contextlib.asynccontextmanager
    async def client(
        self, user: str, told: Callable[[str], object] = print
    ) -> AsyncIterator[Client]:
        """Connect a user without anything of ours; `told` gets the server's errors."""

        async def tell(error: Exception) -> None:
            told(str(error).lower())

        settings = self.settings(user)
        login, _, password = self.password_file(user).read_text().partition(":")
        client = Client()
        await client.connect(
            list(settings.servers),
            tls=ssl.create_default_context(cafile=settings.ca_file),
            tls_handshake_first=True,
            user=login,
            password=password,
            inbox_prefix=settings.inbox_prefix,
            error_cb=tell,
        )
        try:
            yield client
        finally:
            await client.close()

    def log(self) -> str:
        """Read what the servers said."""
        logs = self.folder.glob("nats-*.log")
        return "\n".join(path.read_text() for path in logs)

    def variables(self, service: str) -> dict[str, str]:
        """Make the variables by which a service reaches the servers as its user."""
        prefix = service.upper()
        return {
            f"{prefix}_SERVERS": ",".join(self.urls),
            f"{prefix}_BUS_CA_FILE": str(self.authority),
            f"{prefix}_BUS_USER": service,
            f"{prefix}_BUS_PASSWORD_FILE": str(self.password_file(service)),
        }

    def callout(self, name: str, kubeconfig: Path, **variables: str) -> Process:
        """Make a replica of the auth callout."""
        keys = self.folder / "authcallout-keys"
        given = {
            **self.variables(CALLOUT),
            "AUTHCALLOUT_BUS_PASSWORD_FILE": str(keys / "password"),
            "AUTHCALLOUT_ISSUER_FILE": str(keys / "issuer"),
            "AUTHCALLOUT_CURVE_FILE": str(keys / "curve"),
            "AUTHCALLOUT_KUBECONFIG": str(kubeconfig),
        }
        log = self.folder / f"{name}.log"
        return Process(CALLOUT, log, **given, **variables)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the servers while the block runs; they have found each other."""
        try:
            self._processes = [self._spawn(number) for number in range(SERVERS)]
            self.wait_healthy()
            self._start_relay()
            yield
        finally:
            self._kill_all()

    @contextlib.asynccontextmanager
    async def running_linked(self) -> AsyncIterator[None]:
        """Run servers that were made with `links`, and the links beside them."""
        async with forwarding(self.links.values()):
            try:
                self._processes = [self._spawn(number) for number in range(SERVERS)]
                await asyncio.to_thread(self.wait_healthy)
                await asyncio.to_thread(self._start_relay)
                yield
            finally:
                self._kill_all()

    def _kill_all(self) -> None:
        """Also those that are stopped."""
        processes = [*self._processes, *([self._relay] if self._relay else [])]
        for process in processes:
            process.kill()
            process.wait()

    def _start_relay(self) -> None:
        """Run what services run beside them, so that outsiders are answered."""
        log = self.folder / "relay.log"
        self._relay = start_relay(self.settings("solver"), log)

    def pid(self, number: int) -> int:
        """Return the process id of one of the servers."""
        return self._processes[number].pid

    def signal(self, number: int, what: signal.Signals) -> None:
        """Send a signal to one of the servers."""
        self._processes[number].send_signal(what)

    def kill(self, number: int) -> None:
        """End one of the servers at once, as a crash would; `start` brings it back."""
        self._processes[number].kill()
        self._processes[number].wait()

    def start(self, number: int) -> None:
        """Start one of the servers again; `wait_healthy` says when it has caught up."""
        self._processes[number] = self._spawn(number)

    def restart(self, number: int) -> None:
        """End one of the servers as asked, and start it again."""
        self.signal(number, signal.SIGTERM)
        self._processes[number].wait()
        self.start(number)

    def lose(self, number: int) -> None:
        """Lose one of the servers with all its data; `start` makes an empty one."""
        self.kill(number)
        for path in (self.folder / f"nats-{number}").iterdir():
            shutil.rmtree(path)

    def wait_healthy(self) -> None:
        """Return when each server says so: its streams have caught up."""
        for port in self._monitor_ports:
            _wait_healthy(f"https://127.0.0.1:{port}/healthz")

    def isolate(self, number: int) -> None:
        """Cut a server off from the others; its clients still reach it."""
        for pair, link in self.links.items():
            if number in pair:
                link.cut()

    def heal(self) -> None:
        """Let all servers reach each other again."""
        for link in self.links.values():
            link.heal()

    def _write_permissions(self) -> None:
        """Before any server starts: one that reads half of it lets everybody in."""
        folder = TOKENS if self._tokens else BASE / "nats"
        shutil.copy(folder / "permissions.conf", self.folder)
        mounted = self.folder / Path(PASSWORDS).parent
        mounted.symlink_to(self.folder / "nats-passwords")
        if self._tokens:
            command = ["bash", str(K8S / "callout-secrets.sh")]
            self._mount(subprocess.check_output(command, text=True))
            mounted = self.folder / Path(CALLOUT_KEYS).parent
            mounted.symlink_to(self.folder / "nats-callout")

    def make_secrets(self, step: str) -> None:
        """Carry out a step of k8s/secrets.sh and mount what it made."""
        made = self.folder / "secrets"
        command = ["bash", str(K8S / "secrets.sh"), str(made), step]
        variables = {**os.environ, **self._variables}
        subprocess.run(command, check=True, capture_output=True, env=variables)
        self._mount((made / "secrets.yaml").read_text())

    def _mount(self, secrets: str) -> None:
        """Mount Secrets, each as a folder of its name.

        As kubelet does, whoever reads a file has the old one or the new one.
        """
        for secret in yaml.safe_load_all(secrets):
            folder = self.folder / secret["metadata"]["name"]
            folder.mkdir(exist_ok=True)
            files = {
                name: base64.b64decode(text)
                for name, text in secret.get("data", {}).items()
            }
            texts = secret.get("stringData", {})
            files |= {name: text.encode() for name, text in texts.items()}
            for name, data in files.items():
                (folder / f".{name}").write_bytes(data)
                (folder / f".{name}").rename(folder / name)

    def _spawn(self, number: int) -> subprocess.Popen[bytes]:
        name = f"nats-{number}"
        text = (BASE / "nats" / "nats.conf").read_text()
        changes = {
            "0.0.0.0:4222": f"127.0.0.1:{self._client_ports[number]}",
            "0.0.0.0:8222": f"127.0.0.1:{self._monitor_ports[number]}",
            "0.0.0.0:6222": f"127.0.0.1:{self._cluster_ports[number]}",
            "/etc/nats/tls": str(self.folder / "nats-tls"),
            '"/data"': f'"{self.folder / name}"',
        }
        for other, port in enumerate(self._cluster_ports):
            host = f"nats-{other}.nats.moorings-system.svc:6222"
            link = self.links.get((number, other))
            changes[host] = f"127.0.0.1:{link.port if link is not None else port}"
        for old, new in changes.items():
            assert old in text, old
            text = text.replace(old, new)
        if self.links:
            # Where others tell of it nobody listens: all ways lead over the links.
            text = text.replace("cluster {", 'cluster {\n  advertise: "127.0.0.1:1"', 1)
        config = self.folder / f"{name}.conf"
        config.write_text(text)
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [find_server_program(), "-c", str(config)],
                env={**os.environ, "POD_NAME": name},
                stdout=log,
                stderr=log,
            )


def _free_ports() -> Iterator[int]:
    """Give free ports, none of them twice."""
    given: set[int] = set()
    while True:
        port = find_free_port()
        if port not in given:
            given.add(port)
            yield port


def _wait_healthy(url: str) -> None:
    """Ask as kubelet does, which looks at no certificate."""
    unverified = ssl._create_unverified_context()  # noqa: S323 # loopback
    until_s = time.monotonic() + HEALTHY_S
    while time.monotonic() < until_s:
        with (
            contextlib.suppress(OSError, urllib.error.URLError),
            urllib.request.urlopen(url, timeout=1, context=unverified) as answer,  # noqa: S310 # loopback
        ):
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise AssertionError(f"{url}: not healthy after {HEALTHY_S:g} s")
