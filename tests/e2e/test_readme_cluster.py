"""README's quick start on a cluster, pasted as it stands there.

Both terminals have what a clone has and nothing more: neither `moorings` nor the plugin
of kubectl is on PATH before the commands put them there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.conftest import OwnControlPlane
from tests.lab import shell
from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.options import Options

HEADING = "## Quick start on a cluster"
READY_S = 180.0
"""`make setup` may have something to do."""


@asynccontextmanager
async def terminal(script: str, environment: Mapping[str, str]) -> AsyncIterator[None]:
    """Paste what runs until Ctrl-C, while the block runs; it says when it is ready."""
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euc",
        script,
        env=environment,
        cwd=shell.ROOT,
        start_new_session=True,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    told = b""
    try:
        async with asyncio.timeout(READY_S):
            while not (line := await process.stdout.readline()).startswith(b"ready: "):
                told += line
                assert line, told.decode()
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        await process.wait()


def newcomer(home: Path, programs: Path, kubeconfig: bytes) -> dict[str, str]:
    """Give the environment of somebody with kubectl, a cluster and the clone."""
    config = home / ".kube" / "config"
    config.parent.mkdir()
    config.write_bytes(kubeconfig)
    ours = Path(sys.executable).parent
    path = [str(programs), *os.environ["PATH"].split(os.pathsep)]
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("KUBE", "MOORINGS_", "VIRTUAL_ENV", "XDG_"))
    }
    return kept | {
        "HOME": str(home),
        "PATH": os.pathsep.join(entry for entry in path if Path(entry) != ours),
    }


async def test_the_quick_start_does_what_it_says(
    own_control_plane: OwnControlPlane, control_plane_programs: Path, tmp_path: Path
) -> None:
    plane = own_control_plane(Options())
    kubeconfig = plane.kubeconfig().read_bytes()
    environment = newcomer(tmp_path, control_plane_programs, kubeconfig)
    first, second = shell.blocks("README.md", HEADING)
    async with plane.client() as kube:
        nodes = [objects.node(f"node-{number}") for number in range(3)]
        async with kubelet.running(kube, nodes):
            driver = "gpu.example.com"
            await kube.create(objects.device_class(driver, driver))
            for item in nodes:
                name, devices = item["metadata"]["name"], objects.devices(4)
                await kube.create(objects.resource_slice(driver, name, devices))
            async with terminal(first, environment):
                told = await shell.run(second, shell.ROOT, environment)
    assert "default/train: Running" in told
    assert told.count("train-") >= 4
    assert "node-" in told
