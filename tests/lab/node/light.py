"""A node of a real kubelet whose containers are only written down (`light_runtime`).

Needs neither root nor a container runtime: kubelet's own device manager, plugin
registration and pod life cycle are what is tried.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

from moorings.local.process import find_free_port
from tests.lab.controlplane.client import Json, named
from tests.lab.controlplane.server import ControlPlane
from tests.lab.node.forget import forget

READY_S = 180.0
_MODULE = Path(__file__).parents[1] / "controlplane"
_REPOSITORY = Path(__file__).parents[3]


class LightNode:
    """A running kubelet and its runtime; `folder` is short, for the sockets in it."""

    def __init__(
        self, name: str, folder: Path, programs: Path, control_plane: ControlPlane
    ) -> None:
        self.name = name
        self.folder = folder
        self.kubelet_folder = folder / "k"
        """What is `/var/lib/kubelet` elsewhere."""
        self.cdi_folder = folder / "cdi"
        """Where the runtime looks for CDI files."""
        self._programs = programs
        self._control_plane = control_plane
        self._port = find_free_port()
        self._kubelet: subprocess.Popen[bytes] | None = None
        self._runtime: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where kubelet answers, by TLS and to anybody."""
        return f"127.0.0.1:{self._port}"

    def start_runtime(self) -> None:
        """Start what plays the container runtime."""
        for name in ("cdi", "containers", "pods", "stubs", "k"):
            (self.folder / name).mkdir(exist_ok=True)
        _compile_cri(self.folder / "stubs")
        socket, stubs = self.folder / "cri.sock", self.folder / "stubs"
        self._runtime = self._spawn(
            "runtime", sys.executable, "-m", "tests.lab.node.light_runtime",
            str(socket), str(self.folder), str(stubs),
        )  # fmt: skip
        deadline = time.monotonic() + READY_S
        while not socket.exists():
            assert time.monotonic() < deadline, self.log("runtime")
            time.sleep(0.02)

    def start_kubelet(self) -> None:
        """Start kubelet, or start it again."""
        settings = self.folder / "kubelet.json"
        settings.write_text(json.dumps(self._settings()))
        own = ["--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
        if os.geteuid() != 0:
            own += ["--user", "--map-root-user"]
        covered = (
            "mkdir -p /var/log/containers; mount -t tmpfs none /var/log; exec $0 $@"
        )
        self._kubelet = self._spawn(
            "kubelet", "unshare", *own, "sh", "-c", covered,
            str(self._programs / "kubelet"),
            f"--config={settings}",
            f"--kubeconfig={self._control_plane.kubeconfig()}",
            f"--root-dir={self.kubelet_folder}",
            f"--cert-dir={self.folder / 'cert'}",
            f"--hostname-override={self.name}",
        )  # fmt: skip

    def kill_kubelet(self) -> None:
        """End kubelet at once; containers go on."""
        _kill(self._kubelet)

    def stop(self) -> None:
        """End both."""
        _kill(self._kubelet)
        _kill(self._runtime)

    def devices_seen(self, pod: Json) -> set[str]:
        """Give the devices that the environment of a pod's container names."""
        name = f"{pod['metadata']['namespace']}_{pod['metadata']['name']}"
        file = self.folder / "containers" / f"{name}.json"
        return {
            entry.partition("=")[2] for entry in json.loads(file.read_text())["env"]
        }

    def log(self, name: str = "kubelet") -> str:
        """Read the log of `kubelet` or `runtime`."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _spawn(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=_REPOSITORY)

    def _settings(self) -> Json:
        endpoint = f"unix://{self.folder / 'cri.sock'}"
        gates = {} if os.geteuid() == 0 else {"KubeletInUserNamespace": True}
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "port": self._port,
            "healthzPort": 0,
            "containerRuntimeEndpoint": endpoint,
            "imageServiceEndpoint": endpoint,
            "podLogsDir": str(self.folder / "pods"),
            "failCgroupV1": False,
            "failSwapOn": False,
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "makeIPTablesUtilChains": False,
            "localStorageCapacityIsolation": False,
            "evictionHard": {"memory.available": "1Mi"},
            "registerNode": True,
            "maxPods": 200,
            "authentication": {
                "anonymous": {"enabled": True},
                "webhook": {"enabled": False},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "featureGates": {"ResourceHealthStatus": True, **gates},
            "nodeStatusUpdateFrequency": "2s",
            "syncFrequency": "2s",
        }


def _compile_cri(folder: Path) -> None:
    """Make the messages of CRI from the file of the Kubernetes that is tested."""
    module = ("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/cri-api")
    found = subprocess.run(
        module, cwd=_MODULE, check=True, stdout=subprocess.PIPE, text=True
    )
    proto = Path(found.stdout.strip()) / "pkg/apis/runtime/v1/api.proto"
    (folder / "cri_v1.proto").write_bytes(proto.read_bytes())
    compiler = (sys.executable, "-m", "grpc_tools.protoc")
    arguments = (f"-I{folder}", f"--python_out={folder}", str(folder / "cri_v1.proto"))
    subprocess.run((*compiler, *arguments), check=True)


def _kill(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        process.kill()
        process.wait()


@contextlib.contextmanager
def running(
    control_plane: ControlPlane, programs: Path, name: str
) -> Iterator[LightNode]:
    """Run a node while the block runs; Ready when this yields, deleted afterwards."""
    with tempfile.TemporaryDirectory(
        prefix="n", dir="/tmp"
    ) as scratch:  # sockets' paths are short
        node = LightNode(name, Path(scratch), programs, control_plane)
        try:
            node.start_runtime()
            node.start_kubelet()
            asyncio.run(_closed(_wait_ready(node, control_plane)))
            yield node
        finally:
            node.stop()
            asyncio.run(_closed(forget(control_plane, name)))


async def _closed(work: Coroutine[Any, Any, None]) -> None:
    """Work, and let connections by TLS close before the loop ends."""
    await work
    await asyncio.sleep(0.25)


async def _wait_ready(node: LightNode, control_plane: ControlPlane) -> None:
    def is_ready(found: Json) -> bool:
        conditions = found.get("status", {}).get("conditions", ())
        return any((c["type"], c["status"]) == ("Ready", "True") for c in conditions)

    try:
        async with control_plane.client() as kube:
            await kube.until(named("v1", "Node", node.name), is_ready, READY_S)
    except AssertionError as error:
        last = "\n".join(node.log().splitlines()[-30:])
        raise AssertionError(f"{error}\n{last}") from None
