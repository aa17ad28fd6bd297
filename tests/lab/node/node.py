"""A node that runs containers: kubelet and containerd, apart from all others.

They have mounts, processes and a network of their own and end with the test; what they
write lies in one folder. The API server is reached under the Service's address.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from tests.lab.controlplane import files
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.options import User
from tests.lab.controlplane.server import ControlPlane
from tests.lab.manifests import K8S
from tests.lab.node import network, settings

READY_S = 240.0
BUSYBOX = "docker.io/library/busybox:1.36"
_REPOSITORY = K8S.parent
_CGROUPS = Path("/sys/fs/cgroup")


def user_of(node: str) -> User:
    """Give the user as whom a kubelet speaks, for the options of a control plane."""
    return User(f"system:node:{node}", ("system:nodes",))


class Node:
    """A running node; `folder` holds its settings and logs."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.kubelet_folder = folder / "kubelet"
        """The folders of drivers that are in `/var/lib/kubelet` there."""
        self.cdi_folder = folder / "cdi"
        """`/var/run/cdi` of the node."""
        self.cgroup = f"moorings-{folder.name}"
        self._process: subprocess.Popen[bytes] | None = None

    def log(self) -> str:
        """Read what containerd and kubelet said last."""
        told = []
        for path in sorted(self.folder.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            told += [f"== {path.name}", *lines]
        return "\n".join(told)

    def container_log(self, pod: Json) -> str:
        """Read what the containers of a pod wrote."""
        meta = pod["metadata"]
        name = f"{meta['namespace']}_{meta['name']}_{meta['uid']}"
        logs = sorted((self.folder / "pods" / name).rglob("*.log"))
        return "\n".join(path.read_text() for path in logs)

    def devices_seen(self, pod: Json) -> set[str]:
        """Give the devices that the environment of a pod's container names."""
        return set(re.findall(r"DEVICE_\w+=(\S+)", self.container_log(pod)))

    def kill_kubelet(self) -> None:
        """End kubelet at once; containers go on, and the node starts it again."""
        assert self._process is not None
        inside = f"--pid=/proc/{self._process.pid}/ns/pid_for_children"
        number = (self.folder / "kubelet.pid").read_text().strip()
        (self.folder / "kubelet.pid").unlink()
        subprocess.run(["nsenter", inside, "kill", "-9", number], check=True)

    def start_kubelet(self) -> None:
        """Wait until the node has started kubelet again."""
        deadline = time.monotonic() + READY_S
        while not (self.folder / "kubelet.pid").exists():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    @contextlib.asynccontextmanager
    async def forward(self, address: str, port: int) -> AsyncIterator[int]:
        """Reach a port of a pod at the yielded port of loopback.

        Plays `kubectl port-forward`, for which the API server would have to reach the
        node.
        """
        assert self._process is not None
        inside = ("nsenter", "--target", str(self._process.pid), "--net")

        async def pass_on(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            connection = await asyncio.create_subprocess_exec(
                *inside, "busybox", "nc", address, str(port),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert connection.stdout
            assert connection.stdin
            server = (connection.stdout, connection.stdin)
            try:
                await network.join((reader, writer), server)
            finally:
                if connection.returncode is None:
                    connection.kill()
                await connection.wait()

        server = await asyncio.start_server(pass_on, "127.0.0.1")
        async with server:
            yield server.sockets[0].getsockname()[1]

    def start(self, programs: Path) -> None:
        """Start it; kubelet comes as soon as containerd has the images."""
        script = Path(__file__).with_name("start.sh")
        apart = ("--mount", "--net", "--pid", "--fork", "--mount-proc")
        with (self.folder / "start.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["unshare", *apart, "--kill-child=SIGKILL", "bash", str(script),
                 str(self.folder), sys.executable],
                cwd=_REPOSITORY,
                env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
                stdout=log,
                stderr=log,
            )  # fmt: skip

    def stop(self) -> None:
        """End everything that runs there, and take its cgroups away."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for top in self._cgroup_tops():
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()

    def _cgroup_tops(self) -> list[Path]:
        """One for each controller, or one for all of them."""
        if (_CGROUPS / "cgroup.controllers").exists():
            return [_CGROUPS / self.cgroup]
        folders = [path for path in _CGROUPS.iterdir() if path.is_dir()]
        return [path / self.cgroup for path in folders if not path.is_symlink()]

    def make_cgroups(self) -> None:
        """Make what kubelet wants to find at its start."""
        for top in self._cgroup_tops():
            top.mkdir(exist_ok=True)
            for given in ("cpuset.cpus", "cpuset.mems"):
                if (top.parent / given).exists() and not (top / given).read_text():
                    (top / given).write_text((top.parent / given).read_text())


@contextlib.asynccontextmanager
async def running(
    control_plane: ControlPlane,
    programs: Path,
    name: str,
    images: Sequence[Path] = (),
    *,
    user: str = "",
) -> AsyncIterator[Node]:
    """Run a node of a control plane while the block runs; Ready when this yields.

    kubelet speaks as `user` of the control plane's options, or as `user_of(name)`.
    """
    # Directly in /tmp: the paths of sockets are short.
    with tempfile.TemporaryDirectory(prefix="node-", dir="/tmp") as scratch:
        node = Node(name, Path(scratch))
        _write_files(node, control_plane, user or user_of(name).name)
        for image in (*_own_images(node.folder), *images):
            (node.folder / "images" / image.name).hardlink_to(image)
        outside = await _serve_outside(node.folder, control_plane)
        node.make_cgroups()
        try:
            node.start(programs)
            async with control_plane.client() as kube:
                await _wait_ready(node, kube)
            yield node
        finally:
            await asyncio.to_thread(node.stop)
            outside.close()


def _write_files(node: Node, control_plane: ControlPlane, user: str) -> None:
    folder = node.folder
    for part in ("images", "cni", "pods", "cert", "cdi"):
        (folder / part).mkdir()
    for part in ("plugins", "plugins_registry", "pod-resources"):
        (node.kubelet_folder / part).mkdir(parents=True)
    config = settings.kubelet_config(f"/{node.cgroup}", str(folder / "pods"))
    (folder / "kubelet.json").write_text(json.dumps(config))
    (folder / "containerd.toml").write_text(settings.containerd_config(str(folder)))
    (folder / "cni" / "10-pods.conflist").write_text(
        json.dumps(settings.network_config())
    )
    access = {"token": control_plane.token(), "authority": str(control_plane.authority)}
    (folder / "names.json").write_text(json.dumps(access))
    kubeconfig = folder / "kubelet.kubeconfig"
    files.write_kubeconfig(
        kubeconfig,
        f"https://{settings.API_ADDRESS}",
        control_plane.authority,
        control_plane.token(user),
    )
    arguments = (
        f"--config={folder / 'kubelet.json'} --kubeconfig={kubeconfig}"
        f" --root-dir=/var/lib/kubelet --cert-dir={folder / 'cert'}"
        f" --hostname-override={node.name} --node-ip={settings.NODE_ADDRESS}"
    )
    (folder / "kubelet.arguments").write_text(arguments)


def _own_images(folder: Path) -> list[Path]:
    """Make the image that holds a pod together, and one with a shell."""
    busybox = shutil.which("busybox")
    assert busybox
    pause, shell = folder / "pause.tar", folder / "busybox.tar"
    make_image(settings.PAUSE, pause, busybox, "/bin/busybox", "--entrypoint",
               "/bin/busybox", "sleep", "1000000")  # fmt: skip
    make_shell_image(BUSYBOX, shell)
    return [pause, shell]


def make_shell_image(name: str, out: Path) -> None:
    """Make an image with a shell and a few programs; needs busybox-static."""
    busybox = shutil.which("busybox")
    assert busybox
    names = ("sh", "env", "sleep", "cat", "ls", "grep", "sort")
    links = [f"/bin/{name}" for name in names]
    make_image(name, out, busybox, "/bin/busybox", *links,
               "--entrypoint", "/bin/sh")  # fmt: skip


def make_image(name: str, out: Path, *arguments: str) -> None:
    """Make the image of one static program."""
    script = str(_REPOSITORY / "scripts" / "image.py")
    command = [sys.executable, script, "program", name, str(out), *arguments]
    subprocess.run(command, check=True, capture_output=True)


async def _serve_outside(folder: Path, control_plane: ControlPlane) -> asyncio.Server:
    """Let the node's network reach the API server."""
    port = int(control_plane.url.rpartition(":")[2])

    async def forward(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        server = await asyncio.open_connection("127.0.0.1", port)
        await network.join((reader, writer), server)

    return await asyncio.start_unix_server(forward, str(folder / network.OUTSIDE))


async def _wait_ready(node: Node, kube: Kube) -> None:
    def is_ready(found: Json) -> bool:
        conditions = found.get("status", {}).get("conditions", ())
        return any(
            entry["type"] == "Ready" and entry["status"] == "True"
            for entry in conditions
        )

    try:
        await kube.until(named("v1", "Node", node.name), is_ready, READY_S)
    except (AssertionError, TimeoutError) as late:
        raise AssertionError(f"{node.name} is not Ready\n{node.log()}") from late
