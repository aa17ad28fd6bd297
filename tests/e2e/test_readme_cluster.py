"""README's quick start on a cluster, line by line as it stands there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.conftest import OwnControlPlane
from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.options import Options

ROOT = Path(__file__).parents[2]
HEADING = "## Quick start on a cluster"
UP = "moorings up"
READY_S = 60.0


def lines() -> list[str]:
    """Read the commands of the quick start."""
    text = (ROOT / "README.md").read_text().partition(HEADING)[2]
    block = text.split("```")[1]
    return [line.partition("  #")[0].strip() for line in block.strip().splitlines()]


@asynccontextmanager
async def running(command: str, environment: dict[str, str]) -> AsyncIterator[None]:
    """Run the stack while the block runs; it says when it is ready."""
    process = await asyncio.create_subprocess_exec(
        *command.split(),
        env=environment,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_S):
            assert (await process.stdout.readline()).startswith(b"ready: ")
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        await process.wait()


async def run(command: str, environment: dict[str, str]) -> str:
    """Run a command; it must succeed."""
    process = await asyncio.create_subprocess_exec(
        *command.split(),
        env=environment,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, f"{command}\n{told.decode()}"
    return told.decode()


async def test_the_quick_start_does_what_it_says(
    own_control_plane: OwnControlPlane, control_plane_programs: Path, tmp_path: Path
) -> None:
    plane = own_control_plane(Options())
    config = tmp_path / ".kube" / "config"
    config.parent.mkdir()
    config.write_bytes(plane.kubeconfig().read_bytes())
    path = (
        str(Path(sys.executable).parent),
        str(control_plane_programs),
        os.environ["PATH"],
    )
    environment = os.environ | {
        "HOME": str(tmp_path),
        "KUBECONFIG": str(config),
        "PATH": os.pathsep.join(path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    commands = [re.sub(r"~(?=/)", str(tmp_path), line) for line in lines()]
    up = next(line for line in commands if line.startswith(UP))
    before, after = commands[: commands.index(up)], commands[commands.index(up) + 1 :]
    async with plane.client() as kube:
        nodes = [objects.node(f"node-{number}") for number in range(3)]
        async with kubelet.running(kube, nodes):
            driver = "gpu.example.com"
            await kube.create(objects.device_class(driver, driver))
            for item in nodes:
                name, devices = item["metadata"]["name"], objects.devices(4)
                await kube.create(objects.resource_slice(driver, name, devices))
            for command in before:
                await run(command, environment)
            async with running(up, environment):
                told = [await run(command, environment) for command in after]
    assert sum("default/train: Running" in text for text in told) == 1
    assert any(text.count("train-") >= 4 and "node-" in text for text in told)
