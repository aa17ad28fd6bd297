"""The servers of k8s/base on loopback, with the Secrets that k8s/secrets.sh makes.

Takes the configuration as it is applied and changes only where it listens and where its
files lie.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
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
from runtime.bus.permissions import PASSWORDS
from runtime.wire import BusSettings
from tests.lab.manifests import BASE, K8S

HEALTHY_S = 30.0
SERVERS = 3


class SecuredNats:
    """The servers, and how each user of the bus reaches them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._client_ports = [find_free_port() for _ in range(SERVERS)]
        self._cluster_ports = [find_free_port() for _ in range(SERVERS)]
        self._monitor_ports = [find_free_port() for _ in range(SERVERS)]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._write_secrets()
        self._write_permissions()

    @property
    def urls(self) -> tuple[str, ...]:
        """Where the servers listen."""
        return tuple(f"nats://127.0.0.1:{port}" for port in self._client_ports)

    @property
    def authority(self) -> Path:
        """Who vouches for them."""
        return self.folder / "nats-tls" / "ca.crt"

    def password_file(self, user: str) -> Path:
        """Where a user's login and password are."""
        return self.folder / f"nats-user-{user}" / "password"

    def settings(self, user: str) -> BusSettings:
        """Make the settings of a user."""
        return BusSettings(
            name=user,
            servers=self.urls,
            replicas=SERVERS,
            ca_file=str(self.authority),
            user=user,
            password_file=str(self.password_file(user)),
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

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the servers while the block runs; they have found each other."""
        try:
            for number in range(SERVERS):
                self._processes.append(self._spawn(number))
            for port in self._monitor_ports:
                _wait_healthy(f"http://127.0.0.1:{port}/healthz")
            yield
        finally:
            for process in self._processes:
                process.kill()
                process.wait()

    def _write_permissions(self) -> None:
        """Before any server starts: one that reads half of it lets everybody in."""
        shutil.copy(BASE / "nats" / "permissions.conf", self.folder)
        mounted = self.folder / Path(PASSWORDS).parent
        mounted.symlink_to(self.folder / "nats-passwords")

    def _write_secrets(self) -> None:
        made = subprocess.run(
            ["bash", str(K8S / "secrets.sh")], check=True, capture_output=True
        )
        for secret in yaml.safe_load_all(made.stdout):
            folder = self.folder / secret["metadata"]["name"]
            folder.mkdir()
            for name, text in secret.get("data", {}).items():
                (folder / name).write_bytes(base64.b64decode(text))
            for name, text in secret.get("stringData", {}).items():
                (folder / name).write_text(text)

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
            changes[host] = f"127.0.0.1:{port}"
        for old, new in changes.items():
            assert old in text, old
            text = text.replace(old, new)
        config = self.folder / f"{name}.conf"
        config.write_text(text)
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [find_server_program(), "-c", str(config)],
                env={**os.environ, "POD_NAME": name},
                stdout=log,
                stderr=log,
            )


def _wait_healthy(url: str) -> None:
    until_s = time.monotonic() + HEALTHY_S
    while time.monotonic() < until_s:
        with (
            contextlib.suppress(OSError, urllib.error.URLError),
            urllib.request.urlopen(url, timeout=1) as answer,  # noqa: S310 # loopback
        ):
            if answer.status == 200:
                return
        time.sleep(0.02)
    raise AssertionError(f"{url}: not healthy after {HEALTHY_S:g} s")
