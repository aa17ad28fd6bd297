"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback.

Owns their processes, ports and files. Each can be killed and started again with the
same port and data; all of them end with this process. Knows nothing of nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from moorings.local.process import find_free_port
from tests.lab.controlplane import files
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.older_client import OlderKube
from tests.lab.controlplane.options import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    PROGRAMS,
    SCHEDULER,
    Options,
)
from tests.lab.controlplane.program import Program


class ControlPlane:
    """A control plane with its state in `folder`, from the programs in `binaries`."""

    def __init__(self, binaries: Path, folder: Path, options: Options) -> None:
        self.options = options
        self.folder = folder
        ready_paths = {
            CONTROLLER_MANAGER: "/healthz",  # it has no /readyz
            SCHEDULER: options.scheduler_ready_path,
        }
        self.programs = {
            name: Program(
                name,
                folder,
                secure=name != ETCD,
                ready_path=ready_paths.get(name, "/readyz"),
            )
            for name in PROGRAMS
        }
        self.binaries = binaries
        self._peer_port = find_free_port()
        self._tokens: dict[str, str] = {}
        self._write_files()

    @property
    def url(self) -> str:
        """Where the API server answers."""
        return self.programs[API_SERVER].url

    @property
    def _store(self) -> Path:
        return self.folder / ETCD

    @property
    def _saved_store(self) -> Path:
        return self.folder / f"{ETCD}-saved"

    @property
    def authority(self) -> Path:
        """What the API server's certificate is checked with, once it has started."""
        return self.folder / API_SERVER / "apiserver.crt"

    def start(self) -> None:
        """Start everything that the options name, and return when all is ready.

        Raises:
            NotReadyError: a program ends or takes too long.
        """
        for name in self.options.programs:
            self.spawn(name)
            if name == API_SERVER:  # the others wait seconds after a failed attempt
                self.wait_ready(name)
        self.wait_ready(*self.options.programs)

    def spawn(self, name: str) -> None:
        """Start a program without waiting; it ends with the thread that does this."""
        program = str(self.binaries / name)
        self.programs[name].spawn([program, *self._arguments(name)])

    def wait_ready(self, *names: str) -> None:
        """Return when each of them says that it is ready.

        Raises:
            NotReadyError: a program ends or takes too long.
        """
        for name in names:
            self.programs[name].wait_ready()

    async def restart(self, name: str) -> None:
        """Start a killed program again, and return when it is ready.

        Raises:
            NotReadyError: it ends or takes too long.
        """
        self.spawn(name)
        await asyncio.to_thread(self.wait_ready, name)

    def save_store(self) -> None:
        """Copy what etcd holds now; it stands still meanwhile."""
        etcd = self.programs[ETCD]
        etcd.pause()
        try:
            shutil.rmtree(self._saved_store, ignore_errors=True)
            shutil.copytree(self._store, self._saved_store)
        finally:
            etcd.resume()

    async def restore_store(self) -> None:
        """Put back what `save_store` copied, and start every program anew.

        As Kubernetes advises; versions of objects go back, as `etcdutl snapshot
        restore` leaves them without `--bump-revision`.

        Raises:
            NotReadyError: a program ends or takes too long.
        """
        self.stop()
        shutil.rmtree(self._store)
        self._saved_store.rename(self._store)
        for name in self.options.programs:
            await self.restart(name)

    def kill(self, name: str) -> None:
        """End a program at once, as a crash would."""
        self.programs[name].kill()

    def stop(self) -> None:
        """End everything; clients first, so that nobody waits for anybody."""
        for program in reversed(self.programs.values()):
            program.kill()

    def token(self, user: str = files.ADMIN.name) -> str:
        """Give the token of the admin or of one of the options' users."""
        return self._tokens[user]

    def kubeconfig(self, user: str = files.ADMIN.name) -> Path:
        """Give the kubeconfig of the admin or of one of the options' users."""
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        if not path.exists():
            self.write_kubeconfig(path, self.token(user))
        return path

    def write_kubeconfig(self, path: Path, token: str) -> None:
        """Write a kubeconfig for any token, such as a service account's."""
        files.write_kubeconfig(path, self.url, self.authority, token)

    def client(self, token: str = "") -> Kube:
        """Make a client; the admin's unless there is a token."""
        given = self.url, self.authority, token or self.token()
        version = self.options.dra_version
        return Kube(*given) if version == "v1" else OlderKube(*given, version=version)

    def component(self, name: str) -> Kube:
        """Make a client of what a component itself serves, such as `/metrics`."""
        authority = self.folder / name / f"{name}.crt"
        return Kube(self.programs[name].url, authority, self.token())

    def _write_files(self) -> None:
        users = (files.ADMIN, *files.COMPONENTS, *self.options.users)
        self._tokens = files.write_tokens(self.folder / "tokens.csv", users)
        files.write_service_account_key(self.folder / "service-account.key")
        files.write_scheduler_config(
            self.folder / "scheduler.json",
            self.kubeconfig("system:kube-scheduler"),
            self.options.scheduler_limits,
            self.options.binding_timeout,
        )

    def _arguments(self, name: str) -> list[str]:
        if name == ETCD:
            return self._etcd()
        if name == API_SERVER:
            arguments = self._api_server()
        elif name == CONTROLLER_MANAGER:
            arguments = self._controller_manager()
        else:
            arguments = [
                f"--config={self.folder / 'scheduler.json'}",
                *self._reviewed("system:kube-scheduler"),
            ]
        return [*arguments, *self._for_all(name)]

    def _for_all(self, name: str) -> Iterator[str]:
        yield "--bind-address=127.0.0.1"
        yield f"--secure-port={self.programs[name].port}"
        yield f"--cert-dir={self.folder / name}"
        if self.options.emulated_version:
            yield f"--emulated-version={self.options.emulated_version}"
        if self.options.feature_gates:
            yield f"--feature-gates={','.join(self.options.feature_gates)}"

    def _reviewed(self, user: str) -> list[str]:
        """Let the API server say who may read metrics; else nobody may."""
        kubeconfig = self.kubeconfig(user)
        return [
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            # Or they end if the API server has not yet said whose certificates count.
            "--authentication-skip-lookup",
        ]

    def _etcd(self) -> list[str]:
        client, peer = self.programs[ETCD].url, f"http://127.0.0.1:{self._peer_port}"
        return [
            f"--data-dir={self._store}",
            "--name=test",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=test={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self) -> list[str]:
        key = self.folder / "service-account.key"
        arguments = [
            f"--etcd-servers={self.programs[ETCD].url}",
            "--advertise-address=192.0.2.2",
            "--endpoint-reconciler-type=none",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged",
        ]
        if self.options.disabled_admission:
            disabled = ",".join(self.options.disabled_admission)
            arguments.append(f"--disable-admission-plugins={disabled}")
        if self.options.runtime_config:
            served = ",".join(self.options.runtime_config)
            arguments.append(f"--runtime-config={served}")
        return arguments

    def _controller_manager(self) -> list[str]:
        limits = self.options.controller_manager_limits
        return [
            f"--kubeconfig={self.kubeconfig('system:kube-controller-manager')}",
            f"--service-account-private-key-file={self.folder / 'service-account.key'}",
            f"--root-ca-file={self.authority}",
            "--use-service-account-credentials=false",
            "--leader-elect=false",
            f"--kube-api-qps={limits.qps}",
            f"--kube-api-burst={limits.burst}",
            f"--controllers={','.join(self.options.controllers)}",
            *self._reviewed("system:kube-controller-manager"),
        ]


@contextlib.contextmanager
def running(binaries: Path, folder: Path, options: Options) -> Iterator[ControlPlane]:
    """Run a control plane while the block runs; ready when this yields.

    Raises:
        NotReadyError: a program ends or takes too long.
    """
    control_plane = ControlPlane(binaries, folder, options)
    try:
        control_plane.start()
        yield control_plane
    finally:
        control_plane.stop()
        # 120 MB each, and pytest keeps folders for days; the logs stay.
        for name in (ETCD, f"{ETCD}-saved"):
            shutil.rmtree(folder / name, ignore_errors=True)
