"""A bus whose agents and platforms show tokens of Kubernetes, and its callouts."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from authcallout.nkeys import AccountKey, CurveKey
from moorings.local.nats_server import find_server_program
from moorings.local.process import ChildProcess, find_free_port
from runtime.bus.permissions import CALLOUT_KEYS, PASSWORDS, server_configuration
from runtime.users import CALLOUT, USERS, logins_of, password_variable
from runtime.wire import BusSettings
from tests.lab.controlplane.client import Json, named
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.nkeys import encode_seed
from tests.lab.personas import SYSTEM
from tests.lab.relay import start_relay
from tests.lab.services import Process

AUDIENCE = "nats.moorings.dev"
TOKEN_S = 600
"""The shortest life that the API server gives."""
READY_S = 120.0


class TokenBus:
    """One nats-server that asks the callout, and what everybody needs to use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self._monitor = find_free_port(), find_free_port()
        self._process = ChildProcess(folder / "nats-server.log")
        self._relay: subprocess.Popen[bytes] | None = None
        self._seeds = {
            "issuer": encode_seed("account", os.urandom(32)),
            "curve": encode_seed("curve", os.urandom(32)),
        }
        for name, seed in self._seeds.items():
            (folder / name).write_text(seed)
        keys = (
            f"AUTHCALLOUT_ISSUER: {AccountKey(self._seeds['issuer']).public}",
            f"AUTHCALLOUT_XKEY: {CurveKey(self._seeds['curve']).public}",
        )
        for file, users, more in (
            (PASSWORDS, USERS, ()),
            (CALLOUT_KEYS, (CALLOUT,), keys),
        ):
            (folder / file).parent.mkdir()
            lines = (*more, *(v for user in users for v in self._passwords(user)))
            (folder / file).write_text("\n".join(lines))
        (folder / "permissions.conf").write_text(server_configuration(tokens=True))
        self._config = folder / "nats.conf"
        self._config.write_text(
            f'listen: "127.0.0.1:{self.port}"\nhttp: "127.0.0.1:{self._monitor}"\n'
            f'include ./permissions.conf\njetstream {{ store_dir: "{folder}/js" }}\n'
        )

    def _passwords(self, user: str) -> Iterator[str]:
        """Make what the server reads of a user, and what the user presents."""
        for login in logins_of(user):
            password = f"p{secrets.token_hex(8)}"
            yield f"{password_variable(login)}: {password}"
            (self.folder / f"{user}.password").write_text(f"{login}:{password}")

    def start(self) -> None:
        """Start the server, and return when it is healthy."""
        self._process.start([find_server_program(), "-c", str(self._config)])
        until_s = time.monotonic() + READY_S
        url = f"http://127.0.0.1:{self._monitor}/healthz"
        while time.monotonic() < until_s:
            with suppress(OSError), urllib.request.urlopen(url, timeout=1):  # loopback
                log = self.folder / "relay.log"
                self._relay = start_relay(self.settings("solver"), log)
                return
            time.sleep(0.02)
        raise AssertionError(self.log())

    def stop(self) -> None:
        """End the server and what runs beside it."""
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait()
        self._process.stop()

    def log(self) -> str:
        """Read what the server said."""
        return self._process.log.read_text()

    def callout(self, name: str, kubeconfig: Path, **variables: str) -> Process:
        """Make a replica of the callout."""
        given = {
            "SERVERS": self.url,
            "BUS_USER": "authcallout",
            "BUS_PASSWORD_FILE": str(self.folder / "authcallout.password"),
            "ISSUER_FILE": str(self.folder / "issuer"),
            "CURVE_FILE": str(self.folder / "curve"),
            "KUBECONFIG": str(kubeconfig),
            **variables,
        }
        prefixed = {f"AUTHCALLOUT_{key}": value for key, value in given.items()}
        return Process("authcallout", self.folder / f"{name}.log", **prefixed)

    @property
    def url(self) -> str:
        """Where the server listens."""
        return f"nats://127.0.0.1:{self.port}"

    def settings(self, user: str, token: str = "") -> BusSettings:
        """Make the settings of a user: by a token, or without one by password."""
        file = self.folder / f"{user}.password"
        if token:
            file = self.folder / f"token-{secrets.token_hex(4)}"
            file.write_text(token)
        return BusSettings(
            name="test", servers=(self.url,), user=user, password_file=str(file)
        )


def token_of(
    kubectl: Kubectl, account: str, pod: Json | None = None, audience: str = AUDIENCE
) -> str:
    """Make a token of a service account (`namespace/name`), as kubelet asks for one."""
    namespace, _, name = account.partition("/")
    bound = []
    if pod is not None:
        meta = pod["metadata"]
        bound = ["--bound-object-kind=Pod", f"--bound-object-name={meta['name']}"]
        bound += [f"--bound-object-uid={meta['uid']}"]
    life = (f"--audience={audience}", f"--duration={TOKEN_S}s")
    return kubectl("create", "token", name, "-n", namespace, *life, *bound).strip()


def agent_pod(kubectl: Kubectl, node: str) -> Json:
    """Make a pod of the node agent on a node, as its DaemonSet does."""
    pod = named("v1", "Pod", f"nodeagent-{node}", SYSTEM)
    boxed = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    pod["spec"] = {
        "nodeName": node,
        "serviceAccountName": "nodeagent",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {"name": "main", "image": "registry.invalid/n", "securityContext": boxed}
        ],
    }
    made: Json = json.loads(kubectl("create", "-o", "json", "-f", "-", given=[pod]))
    return made["items"][0] if made["kind"] == "List" else made
